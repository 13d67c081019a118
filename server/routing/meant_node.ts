/**
 * Whether a person who asks for `NODE:PORT` means that node: see
 * `NODE_NAME_FIELD`.
 *
 * @module
 */

import { HOST_IS_NODE } from "../../proto/link/dial_wishes.ts";
import { DialError, type DialTarget } from "../../proto/peer/dial_error.ts";
import { hostOf, hostPort, portOf } from "../../proto/peer/host_port.ts";
import { isIpAddress } from "../../proto/peer/ip_address.ts";
import type { Peers } from "../peers/peers.ts";
import type {
  DialAuthorizer,
  RequestedDial,
} from "../policy/dial_authorizer.ts";
import type { Registry } from "./registry.ts";
import { nearest } from "../../platform/text/nearest.ts";
import type { AgentLink } from "../../proto/link/link.ts";

/** What decides. */
export interface MeantNodeFacts {
  readonly registry: Registry;
  readonly authorizer?: DialAuthorizer;
  readonly peers?: Peers;
}

/**
 * The same dial of the node's own loopback, where its host is the name of a
 * connected node that this caller may reach there.
 */
export function meantNode<Dial extends RequestedDial>(
  dial: Dial,
  { registry, authorizer, peers }: MeantNodeFacts,
): Dial | undefined {
  const { protocol, address } = dial.target;
  const host = hostOf(address);
  if (dial.node !== undefined || protocol === "unix" || isIpAddress(host)) {
    return undefined;
  }
  // A service that an agent announces is not a name of the agent.
  if (registry.strategyFor(dial.target) === "destHost") return undefined;
  const target: DialTarget = {
    protocol,
    address: hostPort("127.0.0.1", portOf(address)),
  };
  const meant = { ...dial, target, node: `id=${host}` };
  const picked = registry.pick(target, meant.node);
  const agent = picked.kind === "picked" ? picked.link.peer : undefined;
  const isThere = agent !== undefined ||
    peers?.find(target, meant.node)
        .some(({ agentsAreKnown }) => agentsAreKnown) === true;
  return isThere && authorizer?.explain(meant, agent).isAllowed !== false
    ? meant
    : undefined;
}

/** The refusal that makes a caller name the node. */
export function hostIsNode(address: string): DialError {
  const host = hostOf(address);
  return new DialError(
    "refused",
    `Cannot dial ${address}: ${host} is a connected node; name it with ` +
      `--node ${host}, and dial 127.0.0.1:${portOf(address)}`,
    { code: HOST_IS_NODE },
  );
}

// Which nodes are connected, as text for a caller that named none, or one that
// is not there.
//
// It does not check whether the caller may learn them.

/** Names in one sentence; further ones are only counted. */
export const NAMED_MAX = 5;

/** Links that are looked at: a refusal must stay cheap on a big server. */
export const NODES_LOOKED_AT_MAX = 500;

/** A name that is longer is no help, and may be hostile. */
const NAME_CHARACTERS_MAX = 63;

/** The names under which callers find these agents: one for each. */
export function connectedNodes(links: Iterable<AgentLink>): readonly string[] {
  const names = new Map<string, string>();
  let looked = 0;
  for (const { peer } of links) {
    if (++looked > NODES_LOOKED_AT_MAX) break;
    const host = peer.identifiers.host.find(isPresentable);
    const name = host ??
      (isPresentable(peer.agentId) ? `id=${peer.agentId}` : undefined);
    if (name !== undefined) names.set(peer.agentId, name);
  }
  return [...names.values()].sort();
}

/** Such as `did you mean node1?` or `connected: node1, node2`. */
export function nodeHint(wanted: string, nodes: readonly string[]): string {
  const near = nearest(wanted, nodes);
  if (near !== undefined) return `did you mean ${near}?`;
  return nodes.length === 0 ? "" : `connected: ${listOf(nodes)}`;
}

/**
 * Why a target is not behind one node in particular.
 *
 * @param nodes Fewer than two: their names are not for the caller, or not known.
 */
export function ambiguousTarget(
  address: string,
  nodes: readonly string[] = [],
): string {
  const which = nodes.length < 2
    ? "each node; say which with --node"
    : `each of ${nodes.length} nodes; say which with --node (connected: ` +
      `${listOf(nodes)})`;
  return `Cannot dial ${address}: it is another machine on ${which}`;
}

function listOf(nodes: readonly string[]): string {
  const more = nodes.length - NAMED_MAX;
  const shown = nodes.slice(0, NAMED_MAX).join(", ");
  return more > 0 ? `${shown} and ${more} more` : shown;
}

function isPresentable(name: string): boolean {
  return name.length <= NAME_CHARACTERS_MAX && /^[\x21-\x7e]+$/.test(name);
}
