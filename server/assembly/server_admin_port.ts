/**
 * A server's admin port: its routes, the doors that it opens, and who may use
 * them.
 *
 * @module
 */

import {
  actionLog,
  type AdminDoor,
  type AdminRoute,
  type AdminWho,
} from "../../net/admin/admin_api.ts";
import { adminHandler } from "../../net/admin/http_endpoints.ts";
import { isFirstWorker } from "../../net/admin/own_group.ts";
import { profileRoutes } from "../../net/admin/profile_routes.ts";
import { type AdminPort, apiBeside } from "../../net/listen/admin_port.ts";
import type { AdminRemote } from "../../net/listen/admin_remote.ts";
import {
  type CredentialFiles,
  pairFiles,
} from "../../net/tls/trust/credentials.ts";
import type { ServerCore } from "./server_core.ts";
import type { AdminRole } from "../../proto/admin/api.ts";
import { NODE_ORGANIZATION } from "../identity/leaf_certificates.ts";
import type { AdminCandidate } from "../policy/grant_entries.ts";
import type { HttpHandler, HttpPeer } from "../../net/admin/http_port.ts";
import type { ServerDiscovery } from "../discovery/server_discovery.ts";
import type { WatchedFiles } from "../../net/tls/trust/watched_files.ts";
import type { LiveConduits } from "../../platform/conduits/live_conduits.ts";
import type { RecentEvents } from "../../platform/log/recent_events.ts";
import type { ConfigAnswer } from "../../proto/admin/list_answers.ts";
import type { ProgramInfo } from "../../proto/admin/status_answer.ts";
import type { AgentLink } from "../../proto/link/link.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { NodeHistory } from "../links/node_history.ts";
import type { Membership } from "../peers/membership.ts";
import type { Authorization } from "../policy/authorization.ts";
import type { Registry } from "../routing/registry.ts";
import type { ReachedLimit } from "./server_admission.ts";
import type { JoinedNodes } from "./server_agents.ts";

/** The handlers. */
export interface ServerAdminParts {
  readonly shown: ShownServer;
  /** What agents are shown. */
  readonly agentFiles: CredentialFiles;
}

/** @throws {ListenError | CredentialsError} Nothing stays open. */
export function serverAdminPort(
  core: ServerCore,
  { shown, agentFiles }: ServerAdminParts,
): AdminPort {
  const { options, program, limiter, authorization } = core;
  const { adminAccess, agents } = options;
  const { stateDirectory } = agents.identity ?? {};
  const handler = adminHandler(
    program.metrics,
    options.profiling === true ? profileRoutes() : {},
  );
  return program.openAdmin({
    address: options.admin,
    access: {
      stateDirectory,
      ...adminAccess,
      roleOfUser: (uid) => authorization.policy.adminRoleOf({ uid }),
      remote: remoteOf(core, agentFiles),
    },
    handler: apiBeside(
      shown.routes,
      (door) => shown.pages(door, handler),
      actionLog(program.log, (action) => program.trail?.acted(action)),
    ),
    reached: (limit, scope) => limiter.reached(limit, scope),
  });
}

/** The first of several workers has it. */
function remoteOf(
  { options, program: { files }, authorization }: ServerCore,
  agents: CredentialFiles,
): AdminRemote | undefined {
  const { adminRemote: remote, tls } = options;
  if (remote === undefined || !isFirstWorker()) return undefined;
  return {
    address: remote.address,
    credentials: files.credentials("admin-remote", {
      ...agents,
      ...pairFiles(remote.keyPair),
      ca: remote.clientCaFile,
    }),
    tls,
    whoIs: (peer) =>
      remoteWho(peer, (one) => authorization.policy.adminRoleOf(one)),
  };
}

// Identifies a caller of the admin port for other machines.

/** Identifies a caller of the port for other machines, and its rights. */
export function remoteWho(
  { identity }: Pick<HttpPeer, "identity">,
  roleOf: (candidate: AdminCandidate) => AdminRole | undefined,
): AdminWho | undefined {
  const { commonName, certificate } = identity;
  // An authority may be that of nodes, too, and "*" is about everybody.
  const isNode = certificate?.organizations.includes(NODE_ORGANIZATION);
  const role = isNode === true ? undefined : roleOf({ identity });
  return role && { role, name: `CN=${commonName}` };
}

// Shows a server to people: it states what it knows and does, and is given
// routes and pages. Their form is `admin/server`'s business.

/** A server's facts about itself, and its answers. */
export interface ServerParts {
  readonly serverId: string;
  readonly timers: Timers;
  readonly registry: Registry;
  readonly conduits: LiveConduits;
  readonly events: RecentEvents;
  readonly history: NodeHistory;
  readonly files: WatchedFiles;
  readonly peers: Membership;
  /** Absent: nodes do not join here. */
  readonly identity: JoinedNodes | undefined;
  readonly discovery: ServerDiscovery | undefined;
  /** Agents need no certificate. */
  readonly allowsAnonymous: boolean;
  /** The socket for callers on this machine; empty: a port. */
  readonly socket: string;
  /** The present identity of this server. */
  program(): ProgramInfo;
  /** Why it is not ready. */
  problem(): string | undefined;
  pendingDials(): number;
  /** Limits that were reached since the start. */
  reachedLimits(): Iterable<ReachedLimit>;
  /** Agents with two live processes, and since when; by agent id. */
  duplicates(): ReadonlyMap<string, number>;
  /** Flags in effect; absent: no command line started this. */
  readonly flags: (() => ConfigAnswer["flags"]) | undefined;
  /** The last lines of the audit log; absent: there is no audit log. */
  readonly audit: ((limit: number) => readonly string[]) | undefined;
  /** Asks the agent of a link to go elsewhere. @returns Whether it can be asked. */
  drain(link: AgentLink): boolean;
}

/** A server as people see it. */
export interface ShownServer {
  readonly routes: readonly AdminRoute[];
  /** The dashboard for callers that come by `door`, beside `others`. */
  pages(door: AdminDoor, others: HttpHandler): HttpHandler;
  stop(): void;
}

/** Shows one server; see `admin/server/show_server.ts`. */
export type ShowServer = (
  parts: ServerParts,
  authorization: Authorization,
) => ShownServer;
