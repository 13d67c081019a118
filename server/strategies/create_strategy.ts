/**
 * From the name of a strategy to an empty one. Of `default` every agent serves
 * every target, of `defaultRoute` those that announced `default-route=true`.
 *
 * @module
 */

import { cidrStrategy } from "./cidr.ts";
import type { AgentLink } from "../../proto/link/link.ts";
import { AgentList } from "./agent_list.ts";
import { keyedStrategy } from "./keyed.ts";
import type { Identifiers } from "../../proto/peer/identifiers.ts";
import type { StrategyName } from "../options.ts";
import type { Strategy } from "./strategy.ts";

/** Makes an empty strategy. */
export function createStrategy(name: StrategyName): Strategy {
  switch (name) {
    case "default":
      return anyTargetStrategy("default", () => true);
    case "destHost":
      return keyedStrategy("destHost", ({ host, ipv4, ipv6 }) => [
        ...host,
        ...ipv4,
        ...ipv6,
      ]);
    case "defaultRoute":
      return anyTargetStrategy(
        "defaultRoute",
        ({ defaultRoute }) => defaultRoute,
      );
    case "cidr":
      return cidrStrategy();
    case "uid":
      return keyedStrategy("uid", ({ uid }) => uid);
  }
}

/** Agents that qualify serve every target. */
function anyTargetStrategy(
  name: StrategyName,
  qualifies: (identifiers: Identifiers) => boolean,
): Strategy {
  const links = new AgentList();
  return {
    name,
    add: (link) => {
      if (qualifies(link.peer.identifiers)) links.add(link);
    },
    remove: (link) => links.remove(link),
    find: () => links.all,
    links: (): Iterable<AgentLink> => links.all,
  };
}
