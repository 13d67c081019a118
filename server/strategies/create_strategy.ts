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
export function createStrategy<
  C extends Candidate,
  List extends CandidateList<C> = CandidateList<C>,
>(name: StrategyName, newList: () => List): Strategy<C, List> {
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
function anyTargetStrategy<
  C extends Candidate,
  List extends CandidateList<C>,
>(
  name: StrategyName,
  newList: () => List,
  qualifies: (identifiers: Identifiers) => boolean,
): Strategy<C, List> {
  const all = newList();
  const does = ({ peer }: C) => qualifies(peer.identifiers);
  return {
    name,
    add(candidate) {
      if (!does(candidate)) return false;
      all.add(candidate);
      return true;
    },
    remove(candidate) {
      all.remove(candidate);
      return does(candidate);
    },
    list: () => all.all.length === 0 ? undefined : all,
    find: () => all.all,
  };
}
