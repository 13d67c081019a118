/**
 * Strategy `defaultRoute`: agents that announced `default-route=true` serve
 * every target.
 *
 * @module
 */

import type { AgentLink } from "../../proto/link/link.ts";
import { LinkList } from "./link_list.ts";
import type { Strategy } from "./strategy.ts";

/** See the module description. */
export function defaultRouteStrategy(): Strategy {
  const links = new LinkList();
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
