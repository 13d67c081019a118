/**
 * `/v1/nodes/NAME`: all that is known of one node.
 *
 * @module
 */

import { hundredth } from "../../net/admin/own_facts.ts";
import { conduitsAnswer } from "../../platform/conduits/conduit_info.ts";
import type { NodeDetail } from "../../proto/admin/node_answer.ts";
import type { LinkInfo, Warning } from "../../proto/admin/status_answer.ts";
import { announcedName } from "../../proto/link/control_messages.ts";
import type { AgentLink } from "../../proto/link/link.ts";
import { formatIdentifiers } from "../../proto/peer/identifiers.ts";
import { linkProblem, type NodeProblem } from "./node_problem.ts";
import type { NodeView, ViewedNode } from "./node_view.ts";
import type { ServerParts } from "../../server/assembly/server_admin_port.ts";

/** Limits on the lists of each kind. */
const CONDUITS_MAX = 50;
const EVENTS_MAX = 50;
const SERVICES_MAX = 1_000;

/** See the module description. */
export function nodeDetail(
  facts: ServerParts,
  view: NodeView,
  node: ViewedNode,
): NodeDetail {
  const { name, joined, links } = node;
  const summary = view.summaryOf(node);
  const agentId = links[0]?.peer.agentId ?? name;
  return {
    ...summary,
    now: new Date().toISOString(),
    joinedAt: joined?.joinedAt,
    joinedFrom: joined?.joinedFrom,
    grants: words(joined?.identifiers ?? ""),
    identifiers: [
      ...new Set(
        links.flatMap(({ peer }) => words(formatIdentifiers(peer.identifiers))),
      ),
    ],
    linkDetails: links.map((link) => linkInfo(facts, link)),
    services: servicesOf(facts, links),
    warnings: warningsOf(view.problemsOf(node), name),
    conduitDetails: conduitsAnswer(facts.conduits, {
      ...{ sort: "rate", limit: CONDUITS_MAX, node: agentId },
    }).conduits,
    events: eventsOf(facts, name, agentId),
  };
}

function eventsOf(
  { events }: ServerParts,
  name: string,
  agentId: string,
): NodeDetail["events"] {
  const own = events.list({ limit: EVENTS_MAX, node: name });
  if (agentId === name) return own;
  return [...own, ...events.list({ limit: EVENTS_MAX, node: agentId })]
    .sort((a, b) => a.at < b.at ? 1 : -1).slice(0, EVENTS_MAX);
}

/** A URL query, word by word, as people write it. */
function words(query: string): readonly string[] {
  return [...new URLSearchParams(query)].map(([key, value]) =>
    `${key}=${value}`
  );
}

function linkInfo(facts: ServerParts, link: AgentLink): LinkInfo {
  const { registry, history, timers } = facts;
  const { peer, roundTripMs } = link;
  const known = history.linkFacts(link);
  const isLeaving = link.isDraining || registry.isUnwanted(link);
  const problem = linkProblem(facts, [link]);
  return {
    id: known?.id ?? "",
    peer: peer.agentId,
    carrier: peer.carrier,
    address: peer.remoteAddress,
    since: new Date(known?.sinceMs ?? Date.now()).toISOString(),
    software: peer.software,
    state: isLeaving
      ? "draining"
      : registry.isHealthy(link)
      ? "linked"
      : "still",
    roundTripMs: roundTripMs && hundredth(roundTripMs),
    silentMs: Math.max(0, Math.round(timers.now() - link.lastHeardMs)),
    conduits: link.load,
    bulkConduits: link.bulkConduits,
    problem,
  };
}

/** The announced services, and the refused ones among them. */
function servicesOf(
  { discovery }: ServerParts,
  links: readonly AgentLink[],
): NodeDetail["services"] {
  const newest = links.at(-1);
  if (newest === undefined) return [];
  const refused = new Map(
    discovery?.membership.refusalsOf(newest.peer.agentId)
      .map(({ service, reason }) => [service, reason] as const) ?? [],
  );
  const names = new Set(
    (newest.services ?? []).map(announcedName),
  );
  for (const name of refused.keys()) names.add(name);
  return [...names].slice(0, SERVICES_MAX).map((name) => {
    const problem = discovery === undefined
      ? "this server has no catalog; start it with --discovery"
      : refused.get(name);
    return { name, problem };
  });
}

function warningsOf(
  problems: readonly NodeProblem[],
  node: string,
): readonly Warning[] {
  return problems.map((problem) => ({ ...problem, severity: "warning", node }));
}
