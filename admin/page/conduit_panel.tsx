/**
 * One conduit in full, and its end.
 *
 * @module
 */

import type { VNode } from "preact";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type { ConduitInfo } from "../../proto/admin/node_answer.ts";
import { ageText } from "../../platform/text/quantities.ts";
import { stateCell } from "../view/cells.ts";
import { CONDUIT_COLUMNS } from "../view/conduits.ts";
import { useAsked } from "./asked.ts";
import { CellText, ViewFacts } from "./cell.tsx";
import { type Action, ActionButton } from "./confirm.tsx";
import { Ago, PanelTitle } from "./marks.tsx";
import { peerText } from "./peer_text.ts";
import { goTo, place } from "./place.ts";
import { clock, conduits } from "./server_state.ts";

const AGAIN_MS = 1_000;

/** Ends one conduit. */
export function killOf(conduit: ConduitInfo): Action {
  const { id, caller, target } = conduit;
  return {
    verb: "Kill",
    question: `Kill this connection to ${peerText(target)}?`,
    consequence: `Both ends see a reset, and bytes under way are lost. ` +
      `${peerText(caller)} asked for it ${
        ageText(clock.peek() - Date.parse(conduit.startedAt))
      } ago.`,
    path: `${ADMIN_PATHS.conduit}${encodeURIComponent(id)}/kill`,
    isGrave: true,
    onDone: () => {
      conduits.remove(id);
      const { name, query } = place.peek();
      if (name === id) goTo("conduits", "", Object.fromEntries(query));
    },
  };
}

/** See the module description. */
export function ConduitPanel({ id }: { readonly id: string }): VNode {
  const path = ADMIN_PATHS.conduit + encodeURIComponent(id.toWellFormed());
  const asked = useAsked<ConduitInfo>(path, AGAIN_MS);
  const conduit = asked.kind === "known"
    ? asked.answer
    : conduits.items.get(id);
  return (
    <>
      <PanelTitle
        name={conduit?.target ?? id}
        problem={asked.kind === "failed" ? asked.message : undefined}
      />
      {conduit && (
        <>
          <div class="panel-state">
            <CellText cell={stateCell(conduit.state)} />
            <Ago at={conduit.startedAt} />
            <span class="actions">
              <ActionButton action={killOf(conduit)} />
            </span>
          </div>
          <ViewFacts
            facts={CONDUIT_COLUMNS.map(({ heading, of }) => ({
              name: heading,
              value: of(conduit, clock.value),
            }))}
          />
        </>
      )}
    </>
  );
}
