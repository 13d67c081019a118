/**
 * All nodes: found, sorted, filtered by state; one of them in full beside the
 * table.
 *
 * @module
 */

import { type Signal, signal } from "@preact/signals";
import type { VNode } from "preact";
import { useRef } from "preact/hooks";
import type { NodeSummary } from "../../proto/admin/node_answer.ts";
import { type FilterChoice, Filters, Search } from "./filters.tsx";
import { Ago, NodeLink, Said, State } from "./marks.tsx";
import { NodePanel } from "./node_panel.tsx";
import { by, compareNames, useOrdered } from "./ordered.ts";
import { goTo, place } from "./place.ts";
import { nodes } from "./server_state.ts";
import { SplitView } from "./split_view.tsx";
import { countText } from "../../platform/text/quantities.ts";
import { msText, rateText } from "./units.ts";
import { type Column, type Sorting, VirtualGrid } from "./virtual_grid.tsx";

const STATES = ["online", "offline", "pending", "revoked"] as const;

const search = signal("");
const sorting: Signal<Sorting> = signal({ column: "state", isDown: false });

/** What needs attention first. */
function nodeRank({ state, problem, isDuplicate }: NodeSummary): number {
  if (state === "offline") return 0;
  if (state === "pending") return 1;
  if (state === "revoked") return 4;
  return isDuplicate || problem !== undefined ? 2 : 3;
}

const COLUMNS: readonly (Column<NodeSummary> & {
  value?(node: NodeSummary): string | number | undefined;
})[] = [
  {
    ...{ id: "state", title: "State", width: 92, need: 2, isSortable: true },
    value: nodeRank,
    cell: ({ state }) => <State state={state} />,
  },
  {
    ...{ id: "name", title: "Name", width: 150, grows: 3, need: 1 },
    isSortable: true,
    value: ({ name }) => name,
    cell: ({ name, isDuplicate }) => (
      <>
        <NodeLink name={name} isSkipped />
        {isDuplicate && <span class="tag is-bad">duplicate</span>}
      </>
    ),
  },
  {
    ...{ id: "since", title: "Since", width: 104, need: 4, isSortable: true },
    value: ({ since }) => since,
    cell: ({ since }) => <Ago at={since} />,
  },
  {
    ...{ id: "conduits", title: "Connections", width: 98, need: 1 },
    ...{ isNumber: true, isSortable: true },
    value: ({ conduits }) => conduits,
    cell: ({ conduits }) => conduits === 0 ? "–" : countText(conduits),
  },
  {
    ...{ id: "to", title: "To node", width: 92, need: 5 },
    ...{ isNumber: true, isSortable: true },
    value: ({ toTargetRate }) => toTargetRate,
    cell: ({ toTargetRate }) => rateText(toTargetRate),
  },
  {
    ...{ id: "from", title: "From node", width: 96, need: 5 },
    ...{ isNumber: true, isSortable: true },
    value: ({ fromTargetRate }) => fromTargetRate,
    cell: ({ fromTargetRate }) => rateText(fromTargetRate),
  },
  {
    ...{ id: "rtt", title: "RTT", width: 76, need: 5 },
    ...{ isNumber: true, isSortable: true },
    value: ({ roundTripMs }) => roundTripMs,
    cell: ({ roundTripMs }) => msText(roundTripMs),
  },
  {
    ...{ id: "links", title: "Links", width: 56, need: 8 },
    ...{ isNumber: true, isSortable: true },
    value: ({ links }) => links,
    cell: ({ links }) => links === 0 ? "–" : countText(links),
  },
  {
    ...{ id: "version", title: "Version", width: 108, need: 9 },
    isSortable: true,
    value: ({ version }) => version,
    cell: ({ version }) => <Said text={version ?? "–"} />,
  },
  {
    ...{ id: "address", title: "Address", width: 150, grows: 2, need: 10 },
    cell: ({ address }) => <Said text={address ?? "–"} />,
  },
  {
    ...{ id: "problem", title: "Problem", width: 170, grows: 4, need: 6 },
    cell: ({ problem, reason }) => <Said text={problem ?? reason ?? ""} />,
  },
];

/** See the module description. */
export function NodeList(): VNode {
  const { name, query } = place.value;
  const state = query.get("state") ?? "";
  const isHeld = useRef(false);
  const { column, isDown } = sorting.value;
  const text = search.value.trim().toLowerCase();
  const keys = useOrdered(nodes, {
    key: JSON.stringify([state, text, column, isDown]),
    filter: (node) =>
      (state === "" || node.state === state) &&
      (text === "" || matches(node, text)),
    compare: comparison(column, isDown),
  }, () => isHeld.current);
  return (
    <SplitView
      title="Nodes"
      isOpen={name !== ""}
      panel={<NodePanel key={name} name={name} />}
      onClose={() => goTo("nodes", "", state ? { state } : {})}
      tools={
        <>
          <Search
            label="Find a node"
            hint="name, address, version, problem"
            text={search}
          />
          <Filters label="State" choices={choices()} chosen={state} />
          <p class="tally" role="status">
            {countText(keys.length)} of {countText(nodes.items.size)}
          </p>
        </>
      }
    >
      <VirtualGrid<NodeSummary>
        label="Nodes"
        columns={COLUMNS}
        keys={keys}
        get={(key) => nodes.items.get(key)}
        sorting={sorting.value}
        onSort={sortBy}
        onOpen={(key) => goTo("nodes", key, state ? { state } : {})}
        openKey={name}
        onHold={(held) => isHeld.current = held}
        narrow={(node) => <Second node={node} />}
        empty={nodes.isKnown.value
          ? nodes.items.size === 0
            ? "No node is known. `tunnel token create` makes a token for the first."
            : "No node is like that."
          : "Waiting for the server …"}
      />
    </SplitView>
  );
}

function Second({ node }: { readonly node: NodeSummary }): VNode {
  const rate = node.toTargetRate + node.fromTargetRate;
  return (
    <>
      <State state={node.state} /> · {node.state === "online"
        ? `${rateText(rate)} · ${msText(node.roundTripMs)}`
        : <Ago at={node.since} />}
    </>
  );
}

function choices(): readonly FilterChoice[] {
  const counts = new Map<string, number>(STATES.map((state) => [state, 0]));
  void nodes.version.value;
  for (const { state } of nodes.items.values()) {
    counts.set(state, (counts.get(state) ?? 0) + 1);
  }
  return [
    { value: "", title: "all", count: nodes.items.size },
    ...STATES.map((state) => ({
      value: state,
      title: state,
      count: counts.get(state)!,
    })),
  ];
}

function matches(node: NodeSummary, text: string): boolean {
  const { name, address, version, problem, reason } = node;
  return [name, address, version, problem, reason]
    .some((field) => field?.toLowerCase().includes(text));
}

function comparison(
  id: string,
  isDown: boolean,
): (a: NodeSummary, b: NodeSummary) => number {
  const column = COLUMNS.find((column) => column.id === id);
  if (column?.value === undefined) {
    return (a, b) => compareNames(a.name, b.name);
  }
  return by(column.value, isDown, ({ name }) => name);
}

/** Numbers are wanted with the biggest first. */
function sortBy(id: string): void {
  const { column, isDown } = sorting.value;
  const isNumber = COLUMNS.find((column) => column.id === id)?.isNumber;
  sorting.value = {
    column: id,
    isDown: column === id ? !isDown : isNumber === true,
  };
}
