/**
 * A server's admin port: what is served there, by which ways, and to whom.
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
import type { CredentialFiles } from "../../net/tls/trust/credentials.ts";
import type { ServerCore } from "./server_core.ts";
import type { AdminRole } from "../../proto/admin/api.ts";
import { NODE_ORGANIZATION } from "../identity/leaf_certificates.ts";
import type { AdminCandidate } from "../policy/grant_entries.ts";
import type { HttpHandler, HttpPeer } from "../../net/admin/http_port.ts";
import type { ServerDiscovery } from "../discovery/server_discovery.ts";
import type { Readiness } from "./shutdown.ts";
import type { ServerAgents } from "./server_agents.ts";

/** What is served. */
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
      roleOfUser: (uid) => authorization.adminRoleOf({ uid }),
      remote: remoteOf(core, agentFiles),
    },
    handler: apiBeside(
      shown.routes,
      (door) => shown.pages(door, handler),
      actionLog(program.log, (action) => authorization.acted(action)),
    ),
    reached: (limit, scope) => limiter.reached(limit, scope),
  });
}

/** Of several workers the first one has it. */
function remoteOf(
  { options, program: { files }, authorization }: ServerCore,
  agents: CredentialFiles,
): AdminRemote | undefined {
  const { adminRemote: remote, tls } = options;
  if (remote === undefined || !isFirstWorker()) return undefined;
  const { certFile: cert, keyFile: key } = remote.keyPair ??
    { certFile: agents.cert, keyFile: agents.key };
  const ca = remote.clientCaFile;
  return {
    address: remote.address,
    credentials: files.credentials("admin-remote", { cert, key, ca }),
    tls,
    whoIs: (peer) => remoteWho(peer, (one) => authorization.adminRoleOf(one)),
  };
}

// Who somebody is on the admin port for other machines.

/** Who somebody is on the port for other machines, and what he may. */
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

// What shows a server to people, as the server sees it: it hands over its parts,
// and is given routes and pages. How they look is `admin/server`'s.

/** The parts of a server that know something. */
export interface ServerParts {
  readonly core: ServerCore;
  readonly agents: ServerAgents;
  readonly readiness: Readiness;
  readonly discovery: ServerDiscovery | undefined;
  readonly isDraining: () => boolean;
  /** Where it listens, by what it listens for; empty before it does. */
  readonly addresses: () => Readonly<Record<string, string>>;
}

/** A server as people see it. */
export interface ShownServer {
  readonly routes: readonly AdminRoute[];
  /** The dashboard for callers that come by `door`, beside `others`. */
  pages(door: AdminDoor, others: HttpHandler): HttpHandler;
  stop(): void;
}

/** Shows one server; see `admin/server/show_server.ts`. */
export type ShowServer = (parts: ServerParts) => ShownServer;
