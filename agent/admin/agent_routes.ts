/**
 * The admin API of an agent: its links, dials and what it serves for others.
 *
 * @module
 */

import type { AdminRoute } from "../../net/admin/admin_api.ts";
import { fileWarnings } from "../../net/admin/own_facts.ts";
import type { WatchedFiles } from "../../net/tls/trust/watched_files.ts";
import type { LiveConduits } from "../../platform/conduits/live_conduits.ts";
import type {
  EventLines,
  RecentEvents,
} from "../../platform/log/recent_events.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type {
  ProgramInfo,
  StatusAnswer,
} from "../../proto/admin/status_answer.ts";
import { announcedName } from "../../proto/link/announced_services.ts";
import type { AgentLinks } from "../links/agent_links.ts";
import type { Announcement } from "../links/announcement.ts";
import type { AgentOptions } from "../options.ts";
import { linkInfos, linkWarnings } from "./links_answer.ts";
import { type NodeFacts, programInfo } from "./node_facts.ts";
import { nodeRoutes } from "./node_routes.ts";
import { agentPolicyRoute } from "./policy_route.ts";

/** Lines of an agent's log that people are told of as what they are. */
export const AGENT_EVENT_LINES: EventLines = [
  ["linked to server", "linked"],
  ["a server is linked again", "linked"],
  ["link lost", "unlinked"],
  ["draining", "drain"],
  ["renewed", "certificate"],
];

/** The parts of an agent that know something. */
export interface AgentParts {
  readonly options: AgentOptions;
  readonly conduits: LiveConduits;
  readonly events: RecentEvents;
  readonly files: WatchedFiles;
  readonly links: Pick<AgentLinks, "view">;
  readonly announcement: Announcement;
  /** What it serves on its machine; absent: nothing. */
  readonly proxy: ProxyParts | undefined;
  state(): Pick<ProgramInfo, "isReady" | "isDraining"> & {
    readonly addresses: Readonly<Record<string, string | undefined>>;
  };
}

/** The part of a service proxy in what its agent answers. */
export interface ProxyParts {
  readonly parts: Pick<StatusAnswer, "services" | "follows" | "sources">;
  readonly services: ReturnType<NonNullable<NodeFacts["services"]>>;
}

/** See the module description. */
export function agentRoutes(agent: AgentParts): readonly AdminRoute[] {
  const { options, files, links, announcement, proxy } = agent;
  const { shownFlags, dials, liveRules } = options;
  const policy = agentPolicyRoute({
    rules: () => liveRules === undefined ? dials.rules : liveRules(),
    allowUnix: dials.allowUnix,
  });
  const routes = nodeRoutes({
    conduits: agent.conduits,
    events: agent.events,
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
