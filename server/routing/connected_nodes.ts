/**
 * Which nodes are connected, as text for a caller that named none, or one that
 * is not there.
 *
 * Refuses to know who may learn of them: its caller has decided that.
 *
 * @module
 */

import { nearest } from "../../platform/text/nearest.ts";
import type { AgentLink } from "../../proto/link/link.ts";

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
