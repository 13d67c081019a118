/**
 * The admin API of an agent: its links, dials and what it serves for others.
 *
 * @module
 */

import type { AdminRoute } from "../../net/admin/admin_api.ts";
import { fileWarnings } from "../../net/admin/own_facts.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { announcedName } from "../../proto/link/control_messages.ts";
import type { AgentParts } from "../../agent/shown_agent.ts";
import { linkInfos, linkWarnings } from "./links_answer.ts";
import { programInfo } from "../../agent/node_facts.ts";
import { nodeRoutes } from "./node_routes.ts";
import { agentPolicyRoute } from "./policy_route.ts";

/** See the module description. */
export function agentRoutes(agent: AgentParts): readonly AdminRoute[] {
  const { options, links, announcement, proxy } = agent;
  const { conduits, events, files } = agent.program;
  const { shownFlags, dials, liveRules } = options;
  const policy = agentPolicyRoute({
    rules: () => liveRules === undefined ? dials.rules : liveRules(),
    allowUnix: dials.allowUnix,
  });
  const routes = nodeRoutes({
    conduits,
    events,
    program: () => {
      const { addresses, ...state } = agent.state();
      return programInfo({
        program: "agent",
        id: options.agentId,
        ...state,
        addresses: Object.fromEntries(
          Object.entries(addresses).filter((entry): entry is [string, string] =>
            entry[1] !== undefined
          ),
        ),
      });
    },
    certificates: () => files.certificates,
    warnings: () => [
      ...linkWarnings(links.view(), systemTimers.now()),
      ...fileWarnings(files.notes),
    ],
    parts: () => ({
      links: linkInfos(links.view(), systemTimers.now()),
      announced: announcement.services.map((service) => {
        const name = announcedName(service);
        const problem = announcement.problemOf(name);
        return { name, ...problem === undefined ? {} : { problem } };
      }),
      ...proxy?.parts,
    }),
    ...proxy === undefined ? {} : { services: () => proxy.services },
    ...shownFlags === undefined ? {} : { flags: shownFlags },
  });
  return [...routes, policy];
}
