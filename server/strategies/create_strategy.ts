/**
 * From the name of a strategy to an empty one. Of `default` every agent serves
 * every target, of `defaultRoute` those that announced `default-route=true`.
 *
 * @module
 */

import { cidrStrategy } from "./cidr.ts";
import { keyedStrategy } from "./keyed.ts";
import type { Identifiers } from "../../proto/peer/identifiers.ts";
import type { StrategyName } from "../options.ts";
import type { Candidate, CandidateList, Strategy } from "./strategy.ts";

/** Makes an empty strategy. */
export function createStrategy<C extends Candidate>(
  name: StrategyName,
  newList: () => CandidateList<C>,
): Strategy<C> {
  switch (name) {
    case "default":
      return anyTargetStrategy("default", newList, () => true);
    case "destHost":
      return keyedStrategy("destHost", newList, ({ host, ipv4, ipv6 }) => [
        ...host,
        ...ipv4,
        ...ipv6,
      ]);
    case "defaultRoute":
      return anyTargetStrategy(
        "defaultRoute",
        newList,
        ({ defaultRoute }) => defaultRoute,
      );
    case "cidr":
      return cidrStrategy(newList);
    case "uid":
      return keyedStrategy("uid", newList, ({ uid }) => uid);
  }
}

/** Agents that qualify serve every target. */
function anyTargetStrategy<C extends Candidate>(
  name: StrategyName,
  newList: () => CandidateList<C>,
  qualifies: (identifiers: Identifiers) => boolean,
): Strategy<C> {
  const links = newList();
  return {
    name,
    add: (link) => {
      if (qualifies(link.peer.identifiers)) links.add(link);
    },
    remove: (link) => links.remove(link),
    find: () => links.all,
    links: (): Iterable<C> => links.all,
  };
}
