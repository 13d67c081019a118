/**
 * Strategy `defaultRoute`: agents that announced `default-route=true` serve
 * every target.
 *
 * @module
 */

import type { AgentLink } from "../../proto/link/link.ts";
import { AgentList } from "./agent_list.ts";
import type { Strategy } from "./strategy.ts";

/** See the module description. */
export function defaultRouteStrategy(): Strategy {
  const links = new AgentList();
  return {
    name: "defaultRoute",
    add: (link) => {
      if (link.peer.identifiers.defaultRoute) links.add(link);
    },
    remove: (link) => links.remove(link),
    find: () => links.all,
    links: (): Iterable<AgentLink> => links.all,
  };
}
