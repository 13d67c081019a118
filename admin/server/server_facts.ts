/**
 * What the admin API is told of the server that it is part of. Whoever puts a
 * server together hands it over; here is only what is asked for.
 *
 * @module
 */

import type { LiveConduits } from "../../platform/conduits/live_conduits.ts";
import type { RecentEvents } from "../../platform/log/recent_events.ts";
import type { ConfigAnswer } from "../../proto/admin/list_answers.ts";
import type { ProgramInfo, Warning } from "../../proto/admin/status_answer.ts";
import type { AgentLink, LinkPeer } from "../../proto/link/link.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { WatchedFiles } from "../../net/tls/trust/watched_files.ts";
import type { ServerDiscovery } from "../../server/discovery/server_discovery.ts";
import type { JoinedNodes } from "../../server/assembly/server_agents.ts";
import type { Membership } from "../../server/peers/membership.ts";
import type { Registry } from "../../server/routing/registry.ts";
import type { NodeHistory } from "../../server/links/node_history.ts";

/** See the module description. */
export interface ServerFacts {
  readonly serverId: string;
  readonly timers: Timers;
  readonly registry: Registry;
  readonly conduits: LiveConduits;
  readonly events: RecentEvents;
  readonly history: NodeHistory;
  readonly files: WatchedFiles;
  readonly peers: Membership;
  /** Absent: nodes do not join here. */
  readonly identity?: JoinedNodes;
  readonly discovery?: ServerDiscovery;
  /** Who this is, as it is now. */
  program(): ProgramInfo;
  pendingDials(): number;
  /** Agents that two processes speak for, and since when; by agent id. */
  duplicates(): ReadonlyMap<string, number>;
  /** What other parts want to have said; in no order. */
  warnings(): readonly Warning[];
  /** Flags in effect; absent: no command line started this. */
  readonly flags?: () => ConfigAnswer["flags"];
  /** The last lines of the audit log; absent: there is none. */
  readonly audit?: (limit: number) => readonly string[];
  /** Asks the agent of a link to go elsewhere. @returns Whether it can be asked. */
  drain(link: AgentLink): boolean;
}

/** What a link's agent is called: its node, or itself where it is none. */
export function nameOf({ identity }: ServerFacts, peer: LinkPeer): string {
  return identity?.nodeOf(peer) ?? peer.agentId;
}
