/**
 * How the next backend is chosen out of several that will do.
 *
 * @module
 */

import type { Balance } from "../../../catalog/model.ts";
import type { Backend } from "./backend.ts";
import { LeastConnections } from "./least_connections.ts";
import { RandomChoice } from "./random_choice.ts";
import { RoundRobin } from "./round_robin.ts";
import { Weighted } from "./weighted.ts";

/** Uniform in [0, 1), such as `Math.random`. */
export type Random = () => number;

/** See the module description. */
export interface Strategy {
  /**
   * There are other backends now than there were.
   *
   * @param ring In the order of the catalog.
   */
  reset(ring: readonly Backend[]): void;
  /** @returns One that is wanted, if any is. */
  choose(isWanted: (backend: Backend) => boolean): Backend | undefined;
}

/** Makes one that has no backends yet. */
export function createStrategy(balance: Balance, random: Random): Strategy {
  switch (balance) {
    case "round-robin":
      return new RoundRobin(random);
    case "random":
      return new RandomChoice(random);
    case "least-connections":
      return new LeastConnections(random);
    case "weighted":
      return new Weighted();
  }
}
