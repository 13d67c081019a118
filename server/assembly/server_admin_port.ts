/**
 * A server's admin port: what is served there, by which ways, and to whom.
 *
 * @module
 */

import { actionLog } from "../../net/admin/admin_api.ts";
import { adminHandler } from "../../net/admin/http_endpoints.ts";
import { isFirstWorker } from "../../net/admin/own_group.ts";
import { profileRoutes } from "../../net/admin/profile_routes.ts";
import { type AdminPort, apiBeside } from "../../net/listen/admin_port.ts";
import type { AdminRemote } from "../../net/listen/admin_remote.ts";
import type { CredentialFiles } from "../../net/tls/trust/credentials.ts";
import { remoteWho } from "./remote_admin.ts";
import type { ServerCore } from "./server_core.ts";
import type { ShownServer } from "./shown_server.ts";

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
