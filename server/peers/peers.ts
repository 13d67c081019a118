/**
 * The other servers, as a dial sees them: who may have the agent that this
 * server lacks. Refuses to know how they were found, and how they are reached.
 *
 * @module
 */

import type { DialTarget } from "../../proto/peer/dial_error.ts";

/** Another server. */
export interface Peer {
  readonly serverId: string;
  /** `HOST:PORT` of its agent port. */
  readonly address: string;
  /** Which agents it has is known; absent: it may have any. */
  readonly agentsAreKnown?: boolean;
}

/** All other servers that are known, without those that are gone. */
export interface Peers {
  readonly all: readonly Peer[];
  /**
   * Those that have an agent for a dial, or may have one, best first. Where
   * nobody says which agents they have, that is all of them.
   *
   * @param node See `Registry.pick`.
   */
  find(target: DialTarget, node: string | undefined): readonly Peer[];
}

/** This server is alone, or knows of no other. */
export const NO_PEERS: Peers = { all: [], find: () => [] };
