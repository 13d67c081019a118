/**
 * One node in full: what may be done with it, its links, its biggest connections,
 * what has happened to it.
 *
 * @module
 */

import type { VNode } from "preact";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type { NodeDetail, NodeSummary } from "../../proto/admin/node_answer.ts";
import { counted } from "../../platform/text/quantities.ts";
import { stateCell } from "../view/cells.ts";
import { nodeFacts, nodeSections } from "../view/nodes.ts";
import { useAsked } from "./asked.ts";
import { CellText, SectionPanel, ViewFacts } from "./cell.tsx";
import { type Action, ActionButton } from "./confirm.tsx";
import { Ago, PanelTitle, Said } from "./marks.tsx";
import { Warnings } from "./overview.tsx";
import { placeLink } from "./place.ts";
import { clock, nodes, status } from "./server_state.ts";

const AGAIN_MS = 3_000;

/** See the module description. */
export function NodePanel({ name }: { readonly name: string }): VNode {
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

/** What may be done with a node as it is. */
export function actionsOf(node: NodeSummary): readonly Action[] {
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
