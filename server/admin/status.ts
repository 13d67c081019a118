/**
 * `/v1/status`: the server at a glance.
 *
 * @module
 */

import { conduitsAnswer } from "../../platform/conduits/conduit_info.ts";
import type { ConduitInfo } from "../../proto/admin/conduit_answer.ts";
import type { StatusAnswer, Traffic } from "../../proto/admin/status_answer.ts";
import { clientSummaries } from "../discovery/status/sync_status.ts";
import type { Expiries } from "./expiries.ts";
import {
  leastRoundTrip,
  type NodeView,
  turn,
  type ViewedNode,
} from "./node_view.ts";
import type { ServerFacts } from "./server_facts.ts";
import { warningsOf } from "./warnings.ts";

/** What is listed of each kind. */
const GONE_MAX = 20;
const SLOWEST_MAX = 5;
const TOP_MAX = 10;

/** A round trip of the best of us is no slowness. */
const SLOW_MS = 20;

/**
 * See the module description.
 *
 * @param biggest Conduits by rate, where somebody has listed them just now.
 */
export async function statusAnswer(
  facts: ServerFacts,
  view: NodeView,
  expiries: Expiries,
  biggest?: readonly ConduitInfo[],
): Promise<StatusAnswer> {
  const { conduits, discovery } = facts;
  // Each looks at every node: everybody else has a turn in between.
  const warnings = warningsOf(facts, view);
  await turn();
  const nodes = nodesOf(facts, view);
  await turn();
  const next = await expiries.next(view);
  return {
    program: facts.program(),
    warnings,
    traffic: trafficOf(facts),
    expiries: next,
    nodes,
    servers: serversOf(facts),
    ...(discovery === undefined ? {} : {
      sources: discovery.catalog.status.map(({ name, isSynced, problem }) => ({
        name,
        isSynced,
        ...(problem === undefined ? {} : { problem }),
      })),
      discovery: clientsOf(facts),
    }),
    top: biggest?.slice(0, TOP_MAX) ??
      conduitsAnswer(conduits, { sort: "rate", limit: TOP_MAX }).conduits,
  };
}

function trafficOf({ conduits, pendingDials }: ServerFacts): Traffic {
  const [p50, p99] = conduits.dialTimes.percentiles(conduits.nowMs, [
    0.5,
    0.99,
  ]);
  return {
    conduits: conduits.size,
    pendingDials: pendingDials(),
    ...conduits.totals(),
    ...(p50 === undefined ? {} : { dialP50Ms: hundredth(p50) }),
    ...(p99 === undefined ? {} : { dialP99Ms: hundredth(p99) }),
  };
}

function nodesOf(
  facts: ServerFacts,
  { nodes, summaryOf }: NodeView,
): NonNullable<StatusAnswer["nodes"]> {
  const counts = { online: 0, offline: 0, pending: 0, revoked: 0 };
  const gone: ViewedNode[] = [];
  const slow: { readonly node: ViewedNode; readonly ms: number }[] = [];
  for (const node of nodes.values()) {
    counts[node.state]++;
    if (node.state === "offline") gone.push(node);
    const ms = node.state === "online" ? leastRoundTrip(node.links) : undefined;
    if (ms !== undefined && ms >= SLOW_MS) slow.push({ node, ms });
  }
  const sinceMs = ({ past }: ViewedNode) =>
    past === undefined || past.isLinked ? 0 : past.sinceMs;
  gone.sort((a, b) => sinceMs(b) - sinceMs(a));
  slow.sort((a, b) => b.ms - a.ms);
  return {
    ...counts,
    links: facts.registry.links.size,
    lastGone: gone.slice(0, GONE_MAX).map((node) => {
      const { name, since, reason } = summaryOf(node);
      return {
        name,
        ...(since === undefined ? {} : { since }),
        ...(reason === undefined ? {} : { reason }),
      };
    }),
    slowest: slow.slice(0, SLOWEST_MAX).map(({ node, ms }) => {
      const { name, problem } = summaryOf(node);
      const why = problem ??
        `a round trip to it takes ${Math.round(ms)} ms: it is far away`;
      return { name, roundTripMs: hundredth(ms), why };
    }),
  };
}

function serversOf(
  { peers }: ServerFacts,
): NonNullable<StatusAnswer["servers"]> {
  const agents = new Map<string, number>();
  for (const servers of peers.agentsElsewhere().values()) {
    for (const id of servers) agents.set(id, (agents.get(id) ?? 0) + 1);
  }
  return peers.all.map(({ serverId: id, address, agentsAreKnown }) => {
    const problem = peers.problems.find(({ serverId }) => serverId === id);
    return {
      ...{ id, address },
      ...(agentsAreKnown === true ? { agents: agents.get(id) ?? 0 } : {}),
      ...(problem === undefined ? {} : { problem: problem.message }),
    };
  });
}

function clientsOf(
  { discovery, timers }: ServerFacts,
): NonNullable<StatusAnswer["discovery"]> {
  const clients = clientSummaries(discovery!.streams, timers.now());
  const is = (state: string) =>
    clients.filter(({ kinds }) => kinds.some((kind) => kind.state === state))
      .length;
  const refused = is("refused");
  const inSync =
    clients.filter(({ kinds }) =>
      kinds.every(({ state }) => state === "synced" || state === "unsent")
    ).length;
  return { clients: clients.length, inSync, refused };
}

function hundredth(ms: number): number {
  return Math.round(ms * 100) / 100;
}
