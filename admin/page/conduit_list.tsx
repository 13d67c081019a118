/**
 * All conduits: the busiest come each second, and the others are requested
 * every few seconds while the view is open.
 *
 * @module
 */

import type { VNode } from "preact";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type {
  ConduitInfo,
  ConduitsAnswer,
} from "../../proto/admin/node_answer.ts";
import { ageText, rateText, sizeText } from "../../platform/text/quantities.ts";
import { type Column, numbers, stateCell } from "../view/cells.ts";
import { callerText, CONDUIT_COLUMNS } from "../view/conduits.ts";
import { clock, conduits, useAsked } from "./server_state.ts";
import { type Action, ActionButton, role } from "./confirm.tsx";
import { listView } from "./list_view.tsx";
import { Ago, PanelTitle, Said } from "./marks.tsx";
import { goTo, place } from "./place.ts";
import { gridColumns } from "./virtual_grid.tsx";
import { CellText, ViewFacts } from "./cell.tsx";
import { peerText } from "./units.ts";

/** A list of ten thousand is some megabytes: not each second. */
const AGAIN_MS = 15_000;
/** A longer list is of no use to a person; a search at the server is. */
const LIMIT = 20_000;

/** Both ways in one: there is less room than in a terminal. */
const SUMS: readonly Column<ConduitInfo>[] = [
  numbers("RATE", (conduit) => rateText(rateOf(conduit)), { order: rateOf }),
  numbers("BYTES", (conduit) => sizeText(bytesOf(conduit)), { order: bytesOf }),
  { heading: " ", of: () => "" },
];

const COLUMNS = gridColumns([...CONDUIT_COLUMNS, ...SUMS], {
  "TARGET": [150, 1, 3],
  "CALLER": [110, 2, 2],
  "NODE": [110, 3, 2],
  "RATE": [90, 1],
  "BYTES": [76, 5],
  "AGE": [84, 4],
  "IDLE": [76, 7],
  "QUEUE": [76, 6],
  "STATE": [84, 6],
  "WAITS FOR": [96, 8],
  ...(role === "operate" ? { " ": [52, 4] } : {}),
}, {
  "TARGET": ({ target }) => <Said text={target} />,
  " ": (conduit) => <ActionButton action={killOf(conduit)} isSkipped />,
});

/** See the module description. */
export const ConduitList = listView<ConduitInfo, ConduitsAnswer>({
  ...{ view: "conduits", title: "Connections", columns: COLUMNS },
  find: ["a connection", "target, caller, node, service, id"],
  choices: () =>
    ["", "moving", "stalled", "dialing"]
      .map((value) => ({ value, title: value || "all" })),
  followed: conduits,
  asked: {
    path: `${ADMIN_PATHS.conduits}?limit=${LIMIT}&sort=rate`,
    everyMs: AGAIN_MS,
    items: (answer) => answer.conduits,
  },
  nameOf: ({ id }) => id,
  sorting: { column: "RATE", isDown: true },
  isLike,
  isWanted: (conduit, query) =>
    [conduit.node, ""].includes(query.get("node") ?? ""),
  words: ({ target, caller, node, service, id, from }) => [
    ...[target, caller, node, service, id, from],
  ],
  tools: toolsFor,
  panel: (id) => <ConduitPanel key={id} id={id} />,
  narrow: (conduit) => (
    <>
      <Said text={callerText(conduit)} /> → <Said text={conduit.node ?? "–"} />
    </>
  ),
  none: () => "There is no connection like that.",
});

/** Takes the choice of a node back. */
function toolsFor(query: URLSearchParams): VNode | null {
  const [node, state] = [query.get("node"), query.get("state")];
  if (!node) return null;
  return (
    <button
      type="button"
      class="button"
      onClick={() => goTo("conduits", "", state ? { state } : {})}
    >
      node <Said text={node} /> ✕
    </button>
  );
}

/** Stalled: bytes wait, and nothing has moved for a second. */
function isLike(conduit: ConduitInfo, state: string): boolean {
  switch (state) {
    case "moving":
      return rateOf(conduit) >= 0.5;
    case "stalled":
      return (conduit.queuedBytes ?? 0) > 0 && conduit.idleMs >= 1000;
    default:
      return conduit.state === state;
  }
}

function rateOf({ toTargetRate, fromTargetRate }: ConduitInfo): number {
  return toTargetRate + fromTargetRate;
}

function bytesOf({ toTargetBytes, fromTargetBytes }: ConduitInfo): number {
  return toTargetBytes + fromTargetBytes;
}

const SHOWN_AGAIN_MS = 1_000;

/** Ends one conduit. */
function killOf(conduit: ConduitInfo): Action {
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

/**
 * One conduit in full, and its end.
 */
function ConduitPanel({ id }: { readonly id: string }): VNode {
  const path = ADMIN_PATHS.conduit + encodeURIComponent(id.toWellFormed());
  const asked = useAsked<ConduitInfo>(path, SHOWN_AGAIN_MS);
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
