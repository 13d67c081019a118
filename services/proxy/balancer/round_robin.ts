/**
 * One after the other, in the order of the catalog.
 *
 * kube-proxy begins with the first again whenever the list changes, and later
 * shuffled the list so that many proxies do not all begin with the same one. The
 * same is had by beginning anywhere, and the order stays what people wrote.
 *
 * @module
 */

import type { Backend } from "./backend.ts";
import type { BalancerStrategy, Random } from "./strategy.ts";

export class RoundRobin implements BalancerStrategy {
  #ring: readonly Backend[] = [];
  #next = 0;

  constructor(private readonly random: Random) {}

  reset(ring: readonly Backend[]): void {
    this.#ring = ring;
    this.#next = Math.floor(this.random() * ring.length);
  }

  get next(): Backend | undefined {
    return this.#ring[this.#next];
  }

  set next(backend: Backend | undefined) {
    const at = this.#ring.findIndex((one) => one === backend);
    if (at >= 0) this.#next = at;
  }

  choose(isWanted: (backend: Backend) => boolean): Backend | undefined {
    const { length } = this.#ring;
    for (let step = 0; step < length; step++) {
      const index = (this.#next + step) % length;
      const backend = this.#ring[index]!;
      if (!isWanted(backend)) continue;
      this.#next = (index + 1) % length;
      return backend;
    }
    return undefined;
  }
}
