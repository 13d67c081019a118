/**
 * The other servers, as a dial sees them: those that may have the agent that
 * this server lacks. It knows neither how they were found nor how they are
 * reached.
 *
 * @module
 */

import type { DialTarget } from "../../proto/peer/dial_error.ts";
import { clipped } from "../../proto/peer/quoted.ts";

/** Another server. */
export interface Peer {
  readonly serverId: string;
  /** `HOST:PORT` of its agent port. */
  readonly address: string;
  /** Which agents it has is known; absent: it may have any. */
  readonly agentsAreKnown?: boolean;
}

/** All other known servers, without those that are gone. */
export interface Peers {
  readonly all: readonly Peer[];
  /**
   * The servers that have, or may have, an agent for a dial, best first. When
   * their agents are not known, these are all servers.
   *
   * @param node See `Registry.pick`.
   */
  find(target: DialTarget, node: string | undefined): readonly Peer[];
}

/** This server is alone, or knows of no other. */
export const NO_PEERS: Peers = { all: [], find: () => [] };

// Which other servers have the agent that this one lacks, as text for a caller
// that may know it.

/** Servers in one sentence; further ones are only counted. */
export const PEERS_NAMED_MAX = 3;

/** @param wanted Such as `host=edge-7`. */
export function peersHint(wanted: string, peers: readonly Peer[]): string {
  const known = peers.filter(({ agentsAreKnown }) => agentsAreKnown === true);
  const named = known.length > 0 ? known : peers;
  const names = named.slice(0, PEERS_NAMED_MAX).map(peerName).join(", ");
  const more = named.length - PEERS_NAMED_MAX;
  const isOne = named.length === 1;
  const who = `${isOne ? "server" : "servers"} ${names}` +
    (more > 0 ? ` and ${more} more` : "");
  const has = known.length === 0 ? "may have it" : isOne ? "has it" : "have it";
  return `No agent available: no agent serves ${wanted} here; ${who} ${has}: ` +
    `call ${isOne ? "that one" : "one of them"}, or start servers with ` +
    "--peer-forwarding";
}

/** Such as `s2 (s2.example:8091)`. */
export function peerName({ serverId, address }: Peer): string {
  return `${printable(serverId)} (${printable(address)})`;
}

function printable(text: string): string {
  return clipped(text.replace(/[^\x21-\x7e]/g, "?"));
}
