/**
 * From the name of a strategy to an empty one.
 *
 * @module
 */

import { cidrStrategy } from "./cidr.ts";
import { defaultRouteStrategy } from "./default_route.ts";
import { everyAgentStrategy } from "./every_agent.ts";
import { keyedStrategy } from "./keyed.ts";
import type { StrategyName } from "../options.ts";
import type { Strategy } from "./strategy.ts";

/** Makes an empty strategy. */
export function createStrategy(name: StrategyName): Strategy {
  switch (name) {
    case "default":
      return everyAgentStrategy();
    case "destHost":
      return keyedStrategy("destHost", ({ host, ipv4, ipv6 }) => [
        ...host,
        ...ipv4,
        ...ipv6,
      ]);
    case "defaultRoute":
      return defaultRouteStrategy();
    case "cidr":
      return cidrStrategy();
    case "uid":
      return keyedStrategy("uid", ({ uid }) => uid);
  }
}
