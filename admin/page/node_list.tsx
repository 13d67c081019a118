/**
 * All nodes: found, sorted, filtered by state; one of them in full beside the
 * table.
 *
 * @module
 */

import { type Signal, signal } from "@preact/signals";
import type { VNode } from "preact";
import type { NodeSummary } from "../../proto/admin/node_answer.ts";
import { millisText, rateText } from "../../platform/text/quantities.ts";
import { orDash, stateCell } from "../view/cells.ts";
import { NODE_COLUMNS } from "../view/nodes.ts";
import { CellText } from "./cell.tsx";
import type { FilterChoice } from "./filters.tsx";
import { ListView } from "./list_view.tsx";
import { Ago, NodeLink } from "./marks.tsx";
import { NodePanel } from "./node_panel.tsx";
import { useSortedGrid } from "./ordered.ts";
import { place } from "./place.ts";
import { nodes } from "./server_state.ts";
import { gridColumns, type Sorting } from "./virtual_grid.tsx";

const STATES = ["online", "offline", "pending", "revoked"] as const;

const search = signal("");
const sorting: Signal<Sorting> = signal({ column: "STATE", isDown: false });

const COLUMNS = gridColumns(NODE_COLUMNS, {
  "STATE": [92, 2],
  "NAME": [150, 1, 3],
  "FOR": [72, 4],
  "CONNS": [70, 1],
  "RATE TO": [92, 5],
  "RATE FROM": [96, 5],
  "RTT": [76, 5],
  "LINKS": [56, 8],
  "VERSION": [108, 9],
  "ADDRESS NOW": [150, 10, 2],
  "PROBLEM": [170, 6, 4],
}, {
  "NAME": ({ name, isDuplicate }) => (
    <>
      <NodeLink name={name} isSkipped />
      {isDuplicate && <span class="tag is-bad">duplicate</span>}
    </>
  ),
});

/** See the module description. */
export function NodeList(): VNode {
  const state = place.value.query.get("state") ?? "";
  const text = search.value.trim().toLowerCase();
  const grid = useSortedGrid(nodes, sorting, COLUMNS, ({ name }) => name, {
    key: JSON.stringify([state, text]),
    filter: (node) =>
      (state === "" || node.state === state) &&
      (text === "" || matches(node, text)),
  });
  return (
    <ListView<NodeSummary>
      {...grid}
      view="nodes"
      title="Nodes"
      find={["a node", "name, address, version, problem"]}
      search={search}
      choices={choices()}
      columns={COLUMNS}
      panel={(name) => <NodePanel key={name} name={name} />}
      narrow={(node) => <Second node={node} />}
      empty={nodes.isKnown.value
        ? nodes.items.size === 0
          ? "No node is known. `tunnel token create` makes a token for the first."
          : "No node is like that."
        : "Waiting for the server …"}
    />
  );
}

function Second({ node }: { readonly node: NodeSummary }): VNode {
  const rate = rateText(node.toTargetRate + node.fromTargetRate);
  return (
    <>
      <CellText cell={stateCell(node.state)} /> · {node.state === "online"
        ? `${rate} · ${orDash(node.roundTripMs, millisText)}`
        : <Ago at={node.since} />}
    </>
  );
}

function choices(): readonly FilterChoice[] {
  const counts = new Map<string, number>();
  void nodes.version.value;
  for (const { state } of nodes.items.values()) {
    counts.set(state, (counts.get(state) ?? 0) + 1);
  }
  return [
    { value: "", title: "all", count: nodes.items.size },
    ...STATES.map((state) => ({
      value: state,
      title: state,
      count: counts.get(state) ?? 0,
    })),
  ];
}

function matches(node: NodeSummary, text: string): boolean {
  const { name, address, version, problem, reason } = node;
  return [name, address, version, problem, reason]
    .some((field) => field?.toLowerCase().includes(text));
}
