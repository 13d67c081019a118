/**
 * Any of them, each as likely as the others.
 *
 * @module
 */

import type { Backend } from "./backend.ts";
import type { BalancerStrategy, Random } from "./strategy.ts";

export class RandomChoice implements BalancerStrategy {
  #ring: readonly Backend[] = [];

  constructor(private readonly random: Random) {}

  reset(ring: readonly Backend[]): void {
    this.#ring = ring;
  }

  choose(isWanted: (backend: Backend) => boolean): Backend | undefined {
    const wanted = this.#ring.filter(isWanted);
    return wanted[Math.floor(this.random() * wanted.length)];
  }
}
