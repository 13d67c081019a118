/**
 * All that is known of nodes at one moment, joined: records, links, conduits,
 * other servers' agents and the history. It is light, because one answer has
 * five thousand of them; sentences are made only for shown nodes.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import { hundredth } from "../../net/admin/own_facts.ts";
import type { NodeSummary } from "../../proto/admin/node_answer.ts";
import type { AgentLink, LinkPeer } from "../../proto/link/link.ts";
import type { BookEntry } from "../../server/identity/node_book.ts";
import type { NodeRecord } from "../../server/identity/node_store.ts";
import {
  type NodeProblem,
  type NodeTrouble,
  type ProblemFacts,
  problemsOf,
} from "./node_problem.ts";
import type { NodePast } from "../../server/links/node_history.ts";
import type { ServerParts } from "../../server/assembly/server_admin_port.ts";

/** A node's failed dials and warnings count for this long. */
const TROUBLE_MS = 300_000;

/** Nodes that are put together at a stretch. */
const NODES_A_TURN = 1_000;

/** A node's present traffic. */
interface Load {
  conduits: number;
  toTargetRate: number;
  fromTargetRate: number;
}

/** One node. */
export interface ViewedNode {
  readonly name: string;
  readonly state: NodeSummary["state"];
  readonly record: BookEntry | undefined;
  /** The same, where it can be read. */
  readonly joined: NodeRecord | undefined;
  readonly links: readonly AgentLink[];
  readonly past: NodePast | undefined;
  /** Other servers that have an agent of the node. */
  readonly elsewhere: readonly string[];
}

/** See the module description. */
export interface NodeView {
  /** By name, sorted. */
  readonly nodes: ReadonlyMap<string, ViewedNode>;
  summaryOf(node: ViewedNode): NodeSummary;
  /** All its problems, the worst first. */
  problemsOf(node: ViewedNode): readonly NodeProblem[];
}

const NO_LINKS: readonly AgentLink[] = [];
const NO_SERVERS: readonly string[] = [];
const NO_RECORDS: ReadonlyMap<string, BookEntry> = new Map();
const NO_LOAD: Load = { conduits: 0, toTargetRate: 0, fromTargetRate: 0 };

/** Everybody else has a turn between the parts of this. */
export function turn(): Promise<void> {
  return new Promise((go) => void setImmediate(go));
}

/** Looks at everything, in turns of a few milliseconds. */
export async function viewNodes(facts: ServerParts): Promise<NodeView> {
  const records = await facts.identity?.book.entries() ?? NO_RECORDS;
  const links = linksByName(facts);
  const elsewhere = facts.peers.agentsElsewhere();
  await turn();
  const loads = loadsOf(facts);
  await turn();
  const names = new Set<string>(records.keys());
  for (const name of links.keys()) names.add(name);
  for (const name of facts.history.names) names.add(name);
  for (const name of elsewhere.keys()) names.add(name);
  const sorted = [...names].sort();
  await turn();
  const nodes = new Map<string, ViewedNode>();
  for (const [at, name] of sorted.entries()) {
    if (at % NODES_A_TURN === NODES_A_TURN - 1) await turn();
    const record = records.get(name);
    const joined = record && "state" in record ? record : undefined;
    const own = links.get(name) ?? NO_LINKS;
    const others = elsewhere.get(name) ?? NO_SERVERS;
    const state = stateOf(joined, own.length + others.length > 0);
    nodes.set(name, {
      ...{ name, state, record, joined },
      ...{ links: own, elsewhere: others },
      past: facts.history.of(name),
    });
  }
  await turn();
  const troubles = troublesOf(facts);
  const duplicates = facts.duplicates();
  const known = ({ name, links }: ViewedNode): ProblemFacts => ({
    trouble: troubles.get(name) ??
      troubles.get(links[0]?.peer.agentId ?? name),
    isDuplicate: links.some(({ peer }) => duplicates.has(peer.agentId)),
  });
  return {
    nodes,
    problemsOf: (node) => [...problemsOf(facts, node, known(node))],
    summaryOf: (node) =>
      summaryOf(facts, node, { load: loadOf(node, loads), ...known(node) }),
  };
}

/**
 * The record decides about a joined node; any other node is online or offline
 * by its links.
 */
function stateOf(
  joined: NodeRecord | undefined,
  isLinked: boolean,
): NodeSummary["state"] {
  const { state } = joined ?? { state: "approved" };
  if (state !== "approved") return state;
  return isLinked ? "online" : "offline";
}

function linksByName(facts: ServerParts): Map<string, AgentLink[]> {
  const found = new Map<string, AgentLink[]>();
  for (const link of facts.registry.links) {
    const name = nameOf(facts, link.peer);
    const others = found.get(name);
    if (others === undefined) found.set(name, [link]);
    else others.push(link);
  }
  return found;
}

/** By agent id. */
function loadsOf({ conduits }: ServerParts): Map<string, Load> {
  const loads = new Map<string, Load>();
  const nowMs = conduits.nowMs;
  for (const conduit of conduits.all()) {
    const { node } = conduit.facts;
    if (node === undefined) continue;
    let load = loads.get(node);
    if (load === undefined) loads.set(node, load = { ...NO_LOAD });
    const flow = conduits.flow(conduit, nowMs);
    load.conduits++;
    load.toTargetRate += flow.toTargetRate;
    load.fromTargetRate += flow.fromTargetRate;
  }
  return loads;
}

function loadOf(node: ViewedNode, loads: ReadonlyMap<string, Load>): Load {
  if (loads.size === 0) return NO_LOAD;
  const [first, ...others] = node.links;
  const own = loads.get(first?.peer.agentId ?? node.name) ?? NO_LOAD;
  const isOne = others.every(({ peer }) =>
    peer.agentId === first!.peer.agentId
  );
  if (isOne) return own;
  const sum = { ...NO_LOAD };
  for (const id of new Set(node.links.map(({ peer }) => peer.agentId))) {
    const load = loads.get(id) ?? NO_LOAD;
    sum.conduits += load.conduits;
    sum.toTargetRate += load.toTargetRate;
    sum.fromTargetRate += load.fromTargetRate;
  }
  return sum;
}

/** By the node, or the agent, of the events. */
function troublesOf({ events }: ServerParts): Map<string, NodeTrouble> {
  const found = new Map<string, NodeTrouble>();
  const sinceMs = Date.now() - TROUBLE_MS;
  for (const kind of ["dial-failed", "warning"] as const) {
    for (const { event } of events.repeated(kind, sinceMs)) {
      const { node } = event;
      // A denied or redirected caller is no problem of the node.
      const isOthers = event.code?.startsWith("TUN6") ||
        event.code === "TUN509";
      if (node === undefined || isOthers) continue;
      const known = found.get(node);
      const isExhausted = event.code === "TUN513";
      if (known === undefined) {
        const exhausted = isExhausted ? event : undefined;
        found.set(node, { newest: event, exhausted });
      } else if (isExhausted && known.exhausted === undefined) {
        found.set(node, { ...known, exhausted: event });
      }
    }
  }
  return found;
}

function summaryOf(
  facts: ServerParts,
  node: ViewedNode,
  known: ProblemFacts & { readonly load: Load },
): NodeSummary {
  const { name, state, record, joined, links, past, elsewhere } = node;
  const newest = links.at(-1);
  const isLinkedAsSaid = past?.isLinked === links.length > 0;
  const since = isLinkedAsSaid && past !== undefined &&
      (state === "online" || state === "offline")
    ? past.since
    : undefined;
  const reason = state === "revoked"
    ? joined?.reason
    : state === "offline" && isLinkedAsSaid
    ? past?.reason
    : undefined;
  const software = newest?.peer.software ?? past?.software;
  const address = newest?.peer.remoteAddress ?? past?.address;
  const roundTripMs = leastRoundTrip(links);
  // The first one is enough, because thousands of nodes are shown.
  const problem = problemsOf(facts, node, known).next().value?.message;
  const until = joined?.certificate?.expiresAt;
  return {
    name,
    state,
    since,
    reason: reason || undefined,
    isJoined: record !== undefined,
    version: software,
    address,
    links: links.length,
    ...known.load,
    roundTripMs: roundTripMs && hundredth(roundTripMs),
    servers: links.length === 0 ? elsewhere : [facts.serverId, ...elsewhere],
    certificateUntil: until,
    isDuplicate: known.isDuplicate || undefined,
    problem,
  };
}

/** Dials take the best of them. */
export function leastRoundTrip(
  links: readonly AgentLink[],
): number | undefined {
  let least: number | undefined;
  for (const { roundTripMs } of links) {
    if (roundTripMs === undefined) continue;
    if (least === undefined || roundTripMs < least) least = roundTripMs;
  }
  return least;
}

/** The name of a link's agent: its node, or its own id without one. */
export function nameOf({ identity }: ServerParts, peer: LinkPeer): string {
  return identity?.nodeOf(peer) ?? peer.agentId;
}
