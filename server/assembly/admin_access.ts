/**
 * Who is shown what a server knows of its catalog: `/debug/*` on the admin port.
 * The port is on loopback, where every user of the machine is; so it is shown to
 * those who may use the API there.
 *
 * @module
 */

import {
  type AdminDoor,
  type AdminWho,
  whoIf,
} from "../../net/admin/admin_api.ts";
import type { AdminRole } from "../../proto/admin/api.ts";
import { NODE_ORGANIZATION } from "../identity/node_certificate.ts";
import type { AdminCandidate } from "../policy/admin_entry.ts";
import { ADMIN_TOKEN_FILE } from "../../net/admin/admin_token.ts";
import type { HttpHandler, HttpPeer } from "../../net/admin/http_port.ts";
import type { AdminDebug } from "../options.ts";

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

/** What is known of the server. */
export interface DebugGuard {
  readonly access: AdminDebug;
  /** Absent: there is no place for a token. */
  readonly stateDirectory?: string | undefined;
  /** What is guarded. */
  readonly paths: ReadonlySet<string>;
}

/** `handler`, for who came by `door` and may. */
export function guardDebug(
  handler: HttpHandler,
  door: AdminDoor,
  { access, stateDirectory, paths }: DebugGuard,
): HttpHandler {
  if (access === "open") return handler;
  return (request, peer) =>
    paths.has(new URL(request.url).pathname) &&
      whoIf(door, request, peer) === undefined
      ? forbidden(stateDirectory)
      : handler(request, peer);
}

function forbidden(stateDirectory: string | undefined): Response {
  const remedy = stateDirectory === undefined
    ? "this server has no --state-dir to keep a token in"
    : `send what is in ${stateDirectory}/${ADMIN_TOKEN_FILE} as ` +
      '"Authorization: Bearer …", as tunnel xds does where it can read that';
  return new Response(
    "/debug/* shows services, nodes and addresses, and not to every user of " +
      `this machine: ${remedy}; or start the server with --admin-debug=open\n`,
    {
      status: 403,
      headers: { "content-type": "text/plain; charset=utf-8" },
    },
  );
}
