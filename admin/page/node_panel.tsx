/**
 * One node in full: what may be done with it, its links, its biggest connections,
 * what has happened to it.
 *
 * @module
 */

import type { VNode } from "preact";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type { NodeDetail, NodeSummary } from "../../proto/admin/node_answer.ts";
import { type Action, ActionButton } from "./confirm.tsx";
import { useAsked } from "./asked.ts";
import { EventRows } from "./event_rows.tsx";
import { Ago, Fact, Facts, Nothing, Said, State, Until } from "./marks.tsx";
import { peerText } from "./peer_text.ts";
import { placeLink } from "./place.ts";
import { nodes, status } from "./server_state.ts";
import { counted } from "../../platform/text/quantities.ts";
import { msText, rateText, timeText } from "./units.ts";
import { Warnings } from "./overview.tsx";

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
      <h2 class="panel-title">
        <Said text={name} />
      </h2>
      {node && (
        <div class="panel-state">
          <State state={node.state} />
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
      {asked.kind === "failed" && (
        <p class="problem is-bad">{peerText(asked.message)}</p>
      )}
      {node && <NodeFacts node={node} detail={detail} />}
      {detail && <Parts detail={detail} />}
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

function NodeFacts(
  { node, detail }: {
    readonly node: NodeSummary;
    readonly detail: NodeDetail | undefined;
  },
): VNode {
  return (
    <Facts>
      <Fact name="Why">{node.reason && <Said text={node.reason} />}</Fact>
      <Fact name={node.state === "online" ? "Address now" : "Last address"}>
        {node.address && <Said text={node.address} />}
      </Fact>
      <Fact name="Version">{node.version && <Said text={node.version} />}</Fact>
      <Fact name="Servers">
        {node.servers.length > 0 && peerText(node.servers.join(", "))}
      </Fact>
      <Fact name="Round trip">
        {node.roundTripMs && msText(node.roundTripMs)}
      </Fact>
      <Fact name="Connections">
        <a href={placeLink("conduits", "", { node: node.name })}>
          {counted(node.conduits, "connection")}
        </a>
      </Fact>
      <Fact name="To the node">{rateText(node.toTargetRate)}</Fact>
      <Fact name="From the node">{rateText(node.fromTargetRate)}</Fact>
      <Fact name="Certificate ends">
        {node.certificateUntil && <Until at={node.certificateUntil} />}
      </Fact>
      <Fact name="Joined">{detail?.joinedAt && timeText(detail.joinedAt)}</Fact>
      <Fact name="Joined from">
        {detail?.joinedFrom && <Said text={detail.joinedFrom} />}
      </Fact>
      <Fact name="Identifiers">
        {detail && <Texts texts={detail.identifiers} />}
      </Fact>
      <Fact name="May be called">
        {detail && <Texts texts={detail.grants} />}
      </Fact>
    </Facts>
  );
}

function Texts({ texts }: { readonly texts: readonly string[] }): VNode {
  if (texts.length === 0) return <span class="faint">–</span>;
  return (
    <ul class="texts">
      {texts.map((text) => (
        <li key={text}>
          <Said text={text} />
        </li>
      ))}
    </ul>
  );
}

function Parts({ detail }: { readonly detail: NodeDetail }): VNode {
  const { warnings, linkDetails, conduitDetails, services } = detail;
  return (
    <>
      {warnings.length > 0 && <Warnings warnings={warnings} />}
      <h3>Links</h3>
      {linkDetails.length === 0 && <Nothing>It is not linked.</Nothing>}
      <ul class="list rows">
        {linkDetails.map((link) => (
          <li key={link.id}>
            <span class="grow">
              <State state={link.state} /> <Said text={link.address} />
              <div class="second">
                {link.carrier}, since <Ago at={link.since} />,{" "}
                {counted(link.conduits, "connection")}
                {link.problem && (
                  <>
                    : <Said text={link.problem} />
                  </>
                )}
              </div>
            </span>
            <span>{msText(link.roundTripMs)}</span>
          </li>
        ))}
      </ul>
      <h3>Biggest connections</h3>
      {conduitDetails.length === 0 && <Nothing>It carries nothing.</Nothing>}
      <ul class="list rows">
        {conduitDetails.slice(0, 12).map((conduit) => (
          <li key={conduit.id}>
            <span class="grow">
              <a class="name" href={placeLink("conduits", conduit.id)}>
                <Said text={conduit.target} />
              </a>
              <div class="second">
                <Said text={conduit.caller} />
              </div>
            </span>
            <span>
              {rateText(conduit.toTargetRate + conduit.fromTargetRate)}
            </span>
          </li>
        ))}
      </ul>
      {services.length > 0 && <h3>Services it announces</h3>}
      <ul class="list rows">
        {services.map(({ name, problem }) => (
          <li key={name}>
            <span class="grow">
              <Said text={name} />
              {problem && (
                <div class="second is-bad">
                  <Said text={problem} />
                </div>
              )}
            </span>
          </li>
        ))}
      </ul>
      <h3>Events</h3>
      {detail.events.length === 0 && <Nothing>Nothing lately.</Nothing>}
      <EventRows events={detail.events} />
    </>
  );
}
