/**
 * The one with the fewest open connections for its weight.
 *
 * Those that have as few take turns: without that the first would get every
 * connection that ends before the next one begins.
 *
 * @module
 */

import type { Backend } from "./backend.ts";
import { RoundRobin } from "./round_robin.ts";
import type { BalancerStrategy, Random } from "./strategy.ts";

export class LeastConnections implements BalancerStrategy {
  readonly #turns: RoundRobin;
  #ring: readonly Backend[] = [];

  constructor(random: Random) {
    this.#turns = new RoundRobin(random);
  }

  reset(ring: readonly Backend[]): void {
    this.#ring = ring;
    this.#turns.reset(ring);
  }

  choose(isWanted: (backend: Backend) => boolean): Backend | undefined {
    let least = Infinity;
    for (const backend of this.#ring) {
      if (isWanted(backend)) least = Math.min(least, loadOf(backend));
    }
    return this.#turns.choose((backend) =>
      isWanted(backend) && loadOf(backend) === least
    );
  }
}

function loadOf({ connections, target }: Backend): number {
  return connections / target.endpoint.weight;
}
