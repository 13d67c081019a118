/**
 * Strategy `default`: every agent may serve every target.
 *
 * @module
 */

import type { AgentLink } from "../../proto/link/link.ts";
import { AgentList } from "./agent_list.ts";
import type { Strategy } from "./strategy.ts";

/** See the module description. */
export function everyAgentStrategy(): Strategy {
  const links = new AgentList();
  return {
    name: "default",
    add: (link) => links.add(link),
    remove: (link) => links.remove(link),
    find: () => links.all,
    links: (): Iterable<AgentLink> => links.all,
  };
}
