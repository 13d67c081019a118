/**
 * What has happened: events as they come, and the tail of the audit log.
 *
 * @module
 */

import { signal } from "@preact/signals";
import type { VNode } from "preact";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type { AuditAnswer } from "../../proto/admin/list_answers.ts";
import { events, useAsked } from "./server_state.ts";
import { Filters, Search } from "./filters.tsx";
import { NameLink, Nothing, Said } from "./marks.tsx";
import { peerText, timeText } from "./units.ts";
import { place } from "./place.ts";
import { countText } from "../../platform/text/quantities.ts";
import { toneOf } from "../view/cells.ts";

const AUDIT_AGAIN_MS = 5_000;
/** More is for a file and grep. */
const SHOWN_MAX = 200;
/** The audit log's fields with a time. */
const TIME_FIELDS: readonly string[] = ["at", "time", "timestamp"];

const search = signal("");

/** See the module description. */
export function Log(): VNode {
  const shown = place.value.query.get("of") ?? "";
  const isAudit = shown === "audit";
  return (
    <div class="log">
      <h1 class="unseen">Log</h1>
      <div class="tools">
        <Search label="Find" hint="node, kind, words" text={search} />
        <Filters
          label="Which log"
          as="of"
          chosen={shown}
          choices={[
            { value: "", title: "events" },
            { value: "audit", title: "audit" },
          ]}
        />
      </div>
      {isAudit ? <Audit /> : <Events />}
    </div>
  );
}

/** Events, the newest first. */
function Events(): VNode {
  const text = search.value.trim().toLowerCase();
  const found = events.value.filter((event) =>
    text === "" ||
    [event.message, event.kind, event.node, event.code]
      .some((field) => field?.toLowerCase().includes(text))
  );
  return (
    <section class="panel" aria-label="Events">
      {found.length === 0 && <Nothing>Nothing has happened lately.</Nothing>}
      <ul class="list events">
        {found.slice(0, SHOWN_MAX).map((event, index) => (
          <li key={index}>
            <time dateTime={event.at}>{timeText(event.at)}</time>
            <span class={`tag is-${toneOf(event.kind)}`}>
              {peerText(event.kind)}
            </span>
            <span class="grow">
              {event.node !== undefined && (
                <>
                  <NameLink name={event.node} />
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
      {found.length > SHOWN_MAX && (
        <Nothing>
          {countText(found.length - SHOWN_MAX)} older ones are not shown.
        </Nothing>
      )}
    </section>
  );
}

function Audit(): VNode {
  const asked = useAsked<AuditAnswer>(
    `${ADMIN_PATHS.audit}?limit=${SHOWN_MAX}`,
    AUDIT_AGAIN_MS,
  );
  const text = search.value.trim().toLowerCase();
  const entries = asked.kind === "known" ? asked.answer.entries : [];
  const found = entries.filter((entry) =>
    text === "" || JSON.stringify(entry).toLowerCase().includes(text)
  );
  return (
    <section class="panel" aria-label="Audit log">
      {asked.kind === "failed" && <Nothing>{peerText(asked.message)}</Nothing>}
      {asked.kind === "known" && found.length === 0 && (
        <Nothing>
          There is no such entry. A server keeps an audit log when it runs with
          --audit-log.
        </Nothing>
      )}
      <ul class="list events">
        {found.map((entry, index) => <AuditRow key={index} entry={entry} />)}
      </ul>
    </section>
  );
}

function AuditRow(
  { entry }: { readonly entry: Readonly<Record<string, unknown>> },
): VNode {
  const fields = Object.entries(entry);
  const time = fields.find(([name, value]) =>
    TIME_FIELDS.includes(name) && typeof value === "string"
  );
  return (
    <li>
      {time && <time dateTime={`${time[1]}`}>{timeText(`${time[1]}`)}</time>}
      <span class="grow fields">
        {fields.filter((field) => field !== time).map(([name, value]) => (
          <span key={name} class="field">
            <span class="faint">{peerText(name)}</span>{" "}
            <Said text={flatText(value)} />
          </span>
        ))}
      </span>
    </li>
  );
}

/** `name uid 0, role operate` */
function flatText(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  return Object.entries(value)
    .map(([name, part]) =>
      Array.isArray(value) ? flatText(part) : `${name} ${flatText(part)}`
    ).join(", ");
}
