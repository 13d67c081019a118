/**
 * Each as often as its weight says, spread as evenly as that can be.
 *
 * nginx's smooth weighted round robin: at each choice everybody gains its
 * weight, and the one that has most pays what all have gained. With weights 5, 1
 * and 1 that is a a b a c a a, and not five times a in a row.
 *
 * @module
 */

import type { Backend } from "./backend.ts";
import type { BalancerStrategy } from "./strategy.ts";

export class Weighted implements BalancerStrategy {
  /** What each has gained and not paid; kept over updates for who stays. */
  #credits = new Map<Backend, number>();

  reset(ring: readonly Backend[]): void {
    const before = this.#credits;
    this.#credits = new Map(
      ring.map((backend) => [backend, before.get(backend) ?? 0]),
    );
  }

  choose(isWanted: (backend: Backend) => boolean): Backend | undefined {
    let best: Backend | undefined;
    let bestCredit = -Infinity;
    let gained = 0;
    for (const [backend, credit] of this.#credits) {
      if (!isWanted(backend)) continue;
      const { weight } = backend.target.endpoint;
      gained += weight;
      const now = credit + weight;
      this.#credits.set(backend, now);
      if (now <= bestCredit) continue;
      best = backend;
      bestCredit = now;
    }
    if (best !== undefined) this.#credits.set(best, bestCredit - gained);
    return best;
  }
}
