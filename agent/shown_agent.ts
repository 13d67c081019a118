/**
 * What shows an agent to people, as the agent sees it: it hands over its parts,
 * and is given routes. What they answer is `admin/agent`'s.
 *
 * @module
 */

import type { AgentLinks } from "./links/agent_links.ts";
import type { Announcement } from "./links/announcement.ts";
import type { LinkEnvironment } from "./links/link_upstream.ts";
import type { AgentOptions } from "./options.ts";
import type { Relay, RelayWays } from "./relay/relay.ts";
import type { AdminRoute } from "../net/admin/admin_api.ts";
import type { Program } from "../net/program/program.ts";
import type { EventLines } from "../platform/log/recent_events.ts";
import type { ProgramInfo } from "../proto/admin/status_answer.ts";
import type { ServiceProxy } from "../services/proxy/service_proxy.ts";

/**
 * Lines of an agent's log that become events of a kind of their own.
 */
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
  readonly program: Pick<Program, "conduits" | "events" | "files">;
  readonly links: Pick<AgentLinks, "view">;
  readonly announcement: Announcement;
  /** What it serves on its machine; absent: nothing. */
  readonly proxy: Pick<ServiceProxy, "parts" | "services"> | undefined;
  state(): Pick<ProgramInfo, "isReady" | "isDraining" | "addresses">;
}

/** Shows one agent; see `admin/agent/agent_routes.ts`. */
export type ShowAgent = (parts: AgentParts) => readonly AdminRoute[];

export interface AgentEnvironment extends LinkEnvironment {
  /** Makes its views for people. */
  readonly show: ShowAgent;
  /** Makes the service proxy of the agent; absent: there is none. */
  readonly openProxy?: (
    program: Program,
    changed: () => void,
  ) => ServiceProxy;
  /** Opens the relays that the options ask for. */
  readonly openRelay?: (
    ways: RelayWays,
    program: Program,
    loadChanged: () => void,
  ) => Relay;
}
