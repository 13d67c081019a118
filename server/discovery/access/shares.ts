/**
 * Whose share each stream is of, by how its call came in: a node's by its
 * certificate, else that of the address that it came from, and one for all on
 * the server's own machine.
 *
 * @module
 */

import type { Clock } from "../../../proto/sync/clock.ts";
import { provenNames } from "../../identity/proven_names.ts";
import { NODE_LIMITS, OPEN_LIMITS, Share } from "./share.ts";
import type { Arrival } from "./subscriber.ts";

/**
 * Shares without a stream that are remembered, so that nobody gets a new one by
 * hanging up; beyond it those go that were made first.
 */
export const IDLE_SHARES_MAX = 4_096;

/** See the module description. */
export class Shares {
  readonly #clock: Clock;
  readonly #shares = new Map<string, Share>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The same one for the same caller. */
  of(arrival: Arrival): Share {
    const name = nameOf(arrival);
    let share = this.#shares.get(name);
    if (share === undefined) {
      if (this.#shares.size >= IDLE_SHARES_MAX) this.#forgetIdle();
      const limits = arrival.needsNoProof ? OPEN_LIMITS : NODE_LIMITS;
      share = new Share(name, limits, this.#clock);
      this.#shares.set(name, share);
    }
    return share;
  }

  /** Half of them at once: this is not done for every caller. */
  #forgetIdle(): void {
    let left = IDLE_SHARES_MAX / 2;
    for (const [name, { streams }] of this.#shares) {
      if (streams > 0) continue;
      this.#shares.delete(name);
      if (--left === 0) return;
    }
  }
}

function nameOf({ needsNoProof, identity, remoteAddress }: Arrival): string {
  if (needsNoProof) return "programs on the server's machine";
  const [node] = provenNames(identity) ?? [];
  if (node !== undefined) return `node ${node}`;
  return `clients at ${remoteAddress.replace(/:\d+$/, "")}`;
}
