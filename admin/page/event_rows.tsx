/**
 * Events, the newest first.
 *
 * @module
 */

import type { VNode } from "preact";
import type { EventInfo } from "../../proto/admin/list_answers.ts";
import { NodeLink, Said } from "./marks.tsx";
import { toneOf } from "../view/cells.ts";
import { peerText } from "./peer_text.ts";
import { timeText } from "./units.ts";

/** See the module description. */
export function EventRows(
  { events, hasNodes = false }: {
    readonly events: readonly EventInfo[];
    readonly hasNodes?: boolean;
  },
): VNode {
  return (
    <ul class="list events">
      {events.map((event, index) => (
        <li key={index}>
          <time dateTime={event.at}>{timeText(event.at)}</time>
          <span class={`tag is-${toneOf(event.kind)}`}>
            {peerText(event.kind)}
          </span>
          <span class="grow">
            {hasNodes && event.node !== undefined && (
              <>
                <NodeLink name={event.node} />
                {" "}
              </>
            )}
            <Said text={event.message} />
            {event.times !== undefined && event.times > 1 && (
              <span class="faint">{` × ${event.times}`}</span>
            )}
            {event.code && <code>{peerText(event.code)}</code>}
          </span>
        </li>
      ))}
    </ul>
  );
}
