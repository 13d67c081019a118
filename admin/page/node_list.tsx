/**
 * All nodes: found, sorted, filtered by state; one of them in full beside the
 * table.
 *
 * @module
 */

import type { VNode } from "preact";
import type { NodeDetail, NodeSummary } from "../../proto/admin/node_answer.ts";
import {
  counted,
  millisText,
  rateText,
} from "../../platform/text/quantities.ts";
import { orDash, stateCell } from "../view/cells.ts";
import { NODE_COLUMNS, nodeFacts, nodeSections } from "../view/nodes.ts";
import { CellText, SectionPanel, ViewFacts } from "./cell.tsx";
import type { FilterChoice } from "./filters.tsx";
import { listView } from "./list_view.tsx";
import { Ago, NameLink, PanelTitle, Said } from "./marks.tsx";
import { placeLink } from "./place.ts";
import { clock, nodes, status, useAsked } from "./server_state.ts";
import { gridColumns } from "./virtual_grid.tsx";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import { type Action, ActionButton } from "./confirm.tsx";
import { Warnings } from "./overview.tsx";

const STATES = ["online", "offline", "pending", "revoked"] as const;

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
      <NameLink name={name} isSkipped />
      {isDuplicate && <span class="tag is-bad">duplicate</span>}
    </>
  ),
});

/** See the module description. */
export const NodeList = listView<NodeSummary>({
  ...{ view: "nodes", title: "Nodes", columns: COLUMNS },
  find: ["a node", "name, address, version, problem"],
  choices,
  followed: nodes,
  nameOf: ({ name }) => name,
  sorting: { column: "STATE", isDown: false },
  isLike: (node, state) => node.state === state,
  words: ({ name, address, version, problem, reason }) => [
    ...[name, address, version, problem, reason],
  ],
  panel: (name) => <NodePanel key={name} name={name} />,
  narrow: (node) => <Second node={node} />,
  none: () =>
    nodes.items.size === 0
      ? "No node is known. `tunnel token create` makes a token for the first."
      : "No node is like that.",
});

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

const AGAIN_MS = 3_000;

/**
 * One node in full: the possible actions, its links, its biggest connections,
 * its events.
 */
function NodePanel({ name }: { readonly name: string }): VNode {
  const path = ADMIN_PATHS.node + encodeURIComponent(name.toWellFormed());
  const asked = useAsked<NodeDetail>(path, AGAIN_MS);
  void nodes.version.value;
  const detail = asked.kind === "known" ? asked.answer : undefined;
  const node = nodes.items.get(name) ?? detail;
  return (
    <>
      <PanelTitle
        name={name}
        problem={asked.kind === "failed" ? asked.message : undefined}
      />
      {node && (
        <div class="panel-state">
          <CellText cell={stateCell(node.state)} />
          {node.since && <Ago at={node.since} />}
          <span class="actions">
            {actionsOf(node).map((action) => (
              <ActionButton key={action.verb} action={action} />
            ))}
          </span>
        </div>
      )}
      {node?.problem && (
        <p class="problem is-warn">
          <Said text={node.problem} />
        </p>
      )}
      {detail && (
        <>
          <ViewFacts facts={nodeFacts(detail)} />
          <a href={placeLink("conduits", "", { node: name })}>
            its connections
          </a>
          {detail.warnings.length > 0 && (
            <Warnings warnings={detail.warnings} />
          )}
          {nodeSections(detail, clock.value).map((section) => (
            <SectionPanel key={section.heading} section={section} />
          ))}
        </>
      )}
    </>
  );
}

/** The actions that a node's present state allows. */
function actionsOf(node: NodeSummary): readonly Action[] {
  const path = ADMIN_PATHS.node + encodeURIComponent(node.name.toWellFormed());
  const actions: Action[] = [];
  if (node.state === "pending" || node.state === "revoked") {
    actions.push({
      verb: "Approve",
      question: `Approve ${node.name}?`,
      consequence: node.state === "pending"
        ? "It gets a certificate and may link to the servers."
        : "This takes its revocation back: it links again by itself.",
      path: `${path}/approve`,
    });
  }
  if (node.state === "online") {
    actions.push({
      verb: "Drain",
      question: `Drain ${node.name}?`,
      consequence: ((status.value?.servers ?? []).length > 0
        ? "Its agents are asked to link to the other servers. "
        : "This server knows of no other: its agents make new links here, " +
          "which serve what comes from now on. ") +
        `${counted(node.conduits, "connection")} may go on to the end.`,
      path: `${path}/drain`,
    });
  }
  if (node.state !== "revoked" && node.isJoined) {
    actions.push({
      verb: "Revoke",
      question: `Revoke ${node.name}?`,
      consequence: "Its certificate is no longer accepted, and its links and " +
        "connections end at once. Its name stays taken; Approve takes this back.",
      path: `${path}/revoke`,
      isGrave: true,
      asksReason: true,
    });
  }
  return actions;
}
