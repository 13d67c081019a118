/**
 * The strategies by the names that a service's policy has for them.
 *
 * @module
 */

import type { Balance } from "../../../catalog/model/model.ts";
import { LeastConnections } from "./least_connections.ts";
import { RandomChoice } from "./random_choice.ts";
import { RoundRobin } from "./round_robin.ts";
import type { BalancerStrategy, Random } from "./strategy.ts";
import { Weighted } from "./weighted.ts";

/** Makes one that has no backends yet. */
export function createBalancerStrategy(
  balance: Balance,
  random: Random,
): BalancerStrategy {
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
