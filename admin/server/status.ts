/**
 * `/v1/status`: the server at a glance.
 *
 * @module
 */

import { hundredth, trafficOf } from "../../net/admin/own_facts.ts";
import { conduitsAnswer } from "../../platform/conduits/conduit_info.ts";
import type { ConduitInfo } from "../../proto/admin/node_answer.ts";
import type { StatusAnswer } from "../../proto/admin/status_answer.ts";
import { clipped } from "../../proto/peer/quoted.ts";
import type { Expiries } from "./expiries.ts";
import { discoveryAnswer } from "./lists.ts";
import { linkProblem } from "./node_problem.ts";
import {
  leastRoundTrip,
  type NodeView,
  turn,
  type ViewedNode,
} from "./node_view.ts";
import type { ServerParts } from "../../server/assembly/server_admin_port.ts";
import { goneMs, warningsOf } from "./warnings.ts";

/** Limits on the lists of each kind. */
const GONE_MAX = 20;
const SLOWEST_MAX = 5;
const TOP_MAX = 10;
const CALLERS_MAX = 5;

/**
 * Limit on a caller's name, which is often the long subject of a certificate.
 */
const CALLER_LENGTH_MAX = 100;

/** A round trip of the best of us is no slowness. */
const SLOW_MS = 20;

/**
 * See the module description.
 *
 * @param biggest Conduits by rate, if they were just listed.
 */
export async function statusAnswer(
  facts: ServerParts,
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
  const next = expiries.next(view);
  return {
    program: facts.program(),
    warnings,
    traffic: trafficOf(conduits, facts.pendingDials()),
    expiries: next,
    nodes,
    servers: serversOf(facts),
    ...(discovery === undefined ? {} : {
      sources: discovery.catalog.status.map(({ name, isSynced, problem }) => ({
        name,
        isSynced,
        problem,
      })),
      discovery: clientsOf(facts),
    }),
    top: biggest?.slice(0, TOP_MAX) ??
      conduitsAnswer(conduits, { sort: "rate", limit: TOP_MAX }).conduits,
  };
}

function nodesOf(
  facts: ServerParts,
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
  gone.sort((a, b) => goneMs(b) - goneMs(a));
  slow.sort((a, b) => b.ms - a.ms);
  return {
    ...counts,
    links: facts.registry.links.size,
    lastGone: gone.slice(0, GONE_MAX).map((node) => {
      const { name, since, reason } = summaryOf(node);
      return { name, since, reason };
    }),
    slowest: slowestOf(facts, slow.slice(0, SLOWEST_MAX), summaryOf),
  };
}

type Slowest = NonNullable<StatusAnswer["nodes"]>["slowest"];

/** Each with the reason, and the side that it waits for. */
function slowestOf(
  facts: ServerParts,
  slow: readonly { readonly node: ViewedNode; readonly ms: number }[],
  summaryOf: NodeView["summaryOf"],
): Slowest {
  const ids = slow.map(({ node }) => node.links[0]?.peer.agentId ?? node.name);
  const callers = callersOf(facts, new Set(ids));
  return slow.map(({ node, ms }, at) => {
    const { name, conduits } = summaryOf(node);
    // What else is wrong with it does not make it slow.
    const why = linkProblem(facts, node.links) ??
      `a round trip to it takes ${Math.round(ms)} ms: it is far away`;
    return {
      ...{ name, roundTripMs: hundredth(ms), why, conduits },
      callers: biggest(callers.get(ids[at]!) ?? new Map()),
    };
  });
}

/** By node, then by caller: the bytes that they have moved. */
function callersOf(
  { conduits }: ServerParts,
  nodes: ReadonlySet<string>,
): ReadonlyMap<string, ReadonlyMap<string, number>> {
  const found = new Map<string, Map<string, number>>();
  if (nodes.size === 0) return found;
  for (const { facts, sentBytes, receivedBytes } of conduits.all()) {
    const { node = "", who = "" } = facts;
    if (!nodes.has(node)) continue;
    let callers = found.get(node);
    if (callers === undefined) found.set(node, callers = new Map());
    const bytes = callers.get(who) ?? 0;
    callers.set(who, bytes + sentBytes + receivedBytes);
  }
  return found;
}

function biggest(callers: ReadonlyMap<string, number>): readonly string[] {
  return [...callers].sort(([, a], [, b]) => b - a).slice(0, CALLERS_MAX)
    .map(([caller]) => clipped(caller, CALLER_LENGTH_MAX));
}

function serversOf(
  { peers }: ServerParts,
): NonNullable<StatusAnswer["servers"]> {
  const agents = new Map<string, number>();
  for (const servers of peers.agentsElsewhere().values()) {
    for (const id of servers) agents.set(id, (agents.get(id) ?? 0) + 1);
  }
  return peers.all.map(({ serverId: id, address, agentsAreKnown }) => {
    const problem = peers.problems.find(({ serverId }) => serverId === id);
    return {
      ...{ id, address },
      agents: agentsAreKnown === true ? agents.get(id) ?? 0 : undefined,
      problem: problem?.message,
    };
  });
}

function clientsOf(
  { discovery, timers }: ServerParts,
): NonNullable<StatusAnswer["discovery"]> {
  const { clients } = discoveryAnswer(discovery!, timers.now());
  const count = (state: typeof clients[number]["state"]) =>
    clients.filter((client) => client.state === state).length;
  return {
    clients: clients.length,
    inSync: count("in sync"),
    refused: count("refused"),
  };
}
