/**
 * All conduits: the busiest are told of each second, the others asked for every
 * few seconds while they are looked at.
 *
 * @module
 */

import { type Signal, signal } from "@preact/signals";
import type { VNode } from "preact";
import { useRef } from "preact/hooks";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type {
  ConduitInfo,
  ConduitsAnswer,
} from "../../proto/admin/conduit_answer.ts";
import { useAsked } from "./asked.ts";
import { ConduitPanel, killOf, waitText } from "./conduit_panel.tsx";
import { ActionButton, role } from "./confirm.tsx";
import { type FilterChoice, Filters, Search } from "./filters.tsx";
import { Said, State } from "./marks.tsx";
import { by, useOrdered } from "./ordered.ts";
import { goTo, place } from "./place.ts";
import { clock, conduits } from "./server_state.ts";
import { SplitView } from "./split_view.tsx";
import {
  ageText,
  countText,
  sizeText,
} from "../../platform/text/quantities.ts";
import { rateText } from "./units.ts";
import { type Column, type Sorting, VirtualGrid } from "./virtual_grid.tsx";

/** A list of ten thousand is some megabytes: not each second. */
const AGAIN_MS = 15_000;
/** More is not looked through by anybody; a search at the server is. */
const LIMIT = 20_000;

const search = signal("");
const sorting: Signal<Sorting> = signal({ column: "rate", isDown: true });

interface ConduitColumn extends Column<ConduitInfo> {
  value?(conduit: ConduitInfo): string | number | undefined;
}

const KILL: ConduitColumn = {
  ...{ id: "kill", title: "", width: 52, need: 4 },
  cell: (conduit) => <ActionButton action={killOf(conduit)} isSkipped />,
};

const COLUMNS: readonly ConduitColumn[] = [
  {
    ...{ id: "target", title: "Target", width: 150, grows: 3, need: 1 },
    isSortable: true,
    value: ({ target }) => target,
    cell: ({ target }) => <Said text={target} />,
  },
  {
    ...{ id: "caller", title: "Caller", width: 110, grows: 2, need: 2 },
    isSortable: true,
    value: ({ caller }) => caller,
    cell: ({ caller }) => <Said text={caller} />,
  },
  {
    ...{ id: "node", title: "Node", width: 110, grows: 2, need: 3 },
    isSortable: true,
    value: ({ node, forwardedTo }) => node ?? forwardedTo,
    cell: ({ node, forwardedTo }) => (
      <Said text={node ?? (forwardedTo ? `server ${forwardedTo}` : "–")} />
    ),
  },
  {
    ...{ id: "rate", title: "Rate", width: 90, need: 1 },
    ...{ isNumber: true, isSortable: true },
    value: rateOf,
    cell: (conduit) => rateText(rateOf(conduit)),
  },
  {
    ...{ id: "bytes", title: "Bytes", width: 76, need: 5 },
    ...{ isNumber: true, isSortable: true },
    value: bytesOf,
    cell: (conduit) => sizeText(bytesOf(conduit)),
  },
  {
    ...{ id: "age", title: "Age", width: 84, need: 4 },
    ...{ isNumber: true, isSortable: true },
    value: ({ startedAt }) => -Date.parse(startedAt),
    cell: ({ startedAt }) => ageText(clock.value - Date.parse(startedAt)),
  },
  {
    ...{ id: "idle", title: "Idle", width: 76, need: 7 },
    ...{ isNumber: true, isSortable: true },
    value: ({ idleMs }) => idleMs,
    cell: ({ idleMs }) => idleMs < 1000 ? "–" : ageText(idleMs),
  },
  {
    ...{ id: "queue", title: "Queue", width: 76, need: 6 },
    ...{ isNumber: true, isSortable: true },
    value: ({ queuedBytes }) => queuedBytes,
    cell: ({ queuedBytes }) => queuedBytes ? sizeText(queuedBytes) : "–",
  },
  {
    ...{ id: "state", title: "State", width: 84, need: 6, isSortable: true },
    value: ({ state }) => state,
    cell: ({ state }) => <State state={state} />,
  },
  {
    ...{ id: "waits", title: "Waits for", width: 84, need: 8 },
    isSortable: true,
    value: ({ waitsFor }) => waitsFor,
    cell: ({ waitsFor }) => waitText(waitsFor),
  },
  ...(role === "operate" ? [KILL] : []),
];

/** See the module description. */
export function ConduitList(): VNode {
  const { name, query } = place.value;
  const node = query.get("node") ?? "";
  const state = query.get("state") ?? "";
  const asked = useAsked<ConduitsAnswer>(
    `${ADMIN_PATHS.conduits}?limit=${LIMIT}&sort=rate`,
    AGAIN_MS,
    ({ conduits: all }) =>
      conduits.apply({ isWhole: true, changed: all, gone: [] }),
  );
  const isHeld = useRef(false);
  const { column, isDown } = sorting.value;
  const text = search.value.trim().toLowerCase();
  const keys = useOrdered(conduits, {
    key: JSON.stringify([node, state, text, column, isDown, asked.kind]),
    filter: (conduit) =>
      (node === "" || conduit.node === node) &&
      (state === "" || isLike(conduit, state)) &&
      (text === "" || matches(conduit, text)),
    compare: by(
      COLUMNS.find(({ id }) => id === column)?.value ?? rateOf,
      isDown,
      ({ id }) => id,
    ),
  }, () => isHeld.current);
  const kept = Object.fromEntries(query);
  return (
    <SplitView
      title="Connections"
      isOpen={name !== ""}
      panel={<ConduitPanel key={name} id={name} />}
      onClose={() => goTo("conduits", "", kept)}
      tools={<Tools shown={keys.length} {...{ state, node }} />}
    >
      <VirtualGrid<ConduitInfo>
        label="Connections"
        columns={COLUMNS}
        keys={keys}
        get={(key) => conduits.items.get(key)}
        sorting={sorting.value}
        onSort={sortBy}
        onOpen={(key) => goTo("conduits", key, kept)}
        openKey={name}
        onHold={(held) => isHeld.current = held}
        narrow={(conduit) => (
          <>
            <Said text={conduit.caller} /> → <Said text={conduit.node ?? "–"} />
          </>
        )}
        empty={conduits.isKnown.value
          ? "There is no connection like that."
          : "Waiting for the server …"}
      />
    </SplitView>
  );
}

function Tools(
  { shown, state, node }: {
    readonly shown: number;
    readonly state: string;
    readonly node: string;
  },
): VNode {
  void conduits.version.value;
  return (
    <>
      <Search
        label="Find a connection"
        hint="target, caller, node, service, id"
        text={search}
      />
      <Filters label="State" choices={CHOICES} chosen={state} />
      {node !== "" && (
        <button
          type="button"
          class="button"
          onClick={() => goTo("conduits", "", state ? { state } : {})}
        >
          node <Said text={node} /> ✕
        </button>
      )}
      <p class="tally" role="status">
        {countText(shown)} of {countText(conduits.items.size)}
      </p>
    </>
  );
}

const CHOICES: readonly FilterChoice[] = [
  { value: "", title: "all" },
  { value: "moving", title: "moving" },
  { value: "stalled", title: "stalled" },
  { value: "dialing", title: "dialing" },
];

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

function matches(conduit: ConduitInfo, text: string): boolean {
  const { target, caller, node, service, id, from } = conduit;
  return [target, caller, node, service, id, from]
    .some((field) => field?.toLowerCase().includes(text));
}

function sortBy(id: string): void {
  const { column, isDown } = sorting.value;
  const isNumber = COLUMNS.find((column) => column.id === id)?.isNumber;
  sorting.value = {
    column: id,
    isDown: column === id ? !isDown : isNumber === true,
  };
}
