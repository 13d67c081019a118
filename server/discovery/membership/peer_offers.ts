/**
 * What agents offer that are linked to other servers: the contract of whatever
 * lets servers know of each other.
 *
 * A server tells its peers what it has seen itself, never what it has heard: so
 * nothing that is gone comes back by way of a third one.
 *
 * @module
 */

import type { OfferedName } from "./announcement.ts";

/** An agent as another server has it. */
export interface OfferingAgent {
  readonly id: string;
  /** The name that it proved; empty: none. */
  readonly node: string;
  /** As the other server has authorized them: the rules here count as well. */
  readonly offers: readonly OfferedName[];
  /** `unready`: it has no link there any more, or that server is gone. */
  readonly state: "ready" | "serving" | "unready";
  /** When it was linked there last, in milliseconds since 1970. */
  readonly seenMs: number;
}

/** Where the agents of other servers are learned; never those of our own. */
export interface PeerOffers {
  /**
   * Each agent once: of several servers that name it, the one that counts by
   * {@linkcode isBetter}. Another object after each change.
   */
  readonly current: ReadonlyMap<string, OfferingAgent>;
  /** Begins to look; `changed` is called after each change of `current`. */
  start(changed: () => void): void;
  /** Settles when nothing of it runs any more. */
  stop(): Promise<void>;
}

const RANKS: Readonly<Record<OfferingAgent["state"], number>> = {
  ready: 2,
  serving: 1,
  unready: 0,
};

/**
 * Whether `one` says more about an agent than `other`: a link that stands before
 * one that is lost, then what was seen last.
 */
export function isBetter(one: OfferingAgent, other: OfferingAgent): boolean {
  const byState = RANKS[one.state] - RANKS[other.state];
  return byState !== 0 ? byState > 0 : one.seenMs > other.seenMs;
}
