/**
 * Who is shown what a server knows: `/debug/*` on the admin port. The port is on
 * loopback, where every user of the machine is, and nobody says who he is; so it
 * is shown to who can read a file that only the server's user can read.
 *
 * @module
 */

import { ADMIN_TOKEN_FILE, AdminToken } from "../../net/admin/admin_token.ts";
import {
  type AdminApiOptions,
  AdminFailure,
} from "../../net/admin/admin_api.ts";
import { guardedRoutes, type Routes } from "../../net/admin/http_endpoints.ts";
import type { Log } from "../../platform/log/log.ts";
import type { AdminDebug } from "../options.ts";

/** What is known of the server. */
export interface AdminAccessOptions {
  readonly access: AdminDebug;
  /** Absent: there is no place for a token, and all requests are refused. */
  readonly stateDirectory?: string;
  readonly log: Log;
}

/**
 * `routes` for those who may. The file is made when it is missing; servers that
 * share a state directory share it.
 */
export async function guardDebug(
  routes: Routes,
  { access, stateDirectory, log }: AdminAccessOptions,
): Promise<Routes> {
  if (access === "open") return routes;
  const token = stateDirectory === undefined
    ? undefined
    : new AdminToken(`${stateDirectory}/${ADMIN_TOKEN_FILE}`);
  await token?.make(log, "nobody is shown /debug/*");
  return guardedRoutes(
    routes,
    (request) =>
      token?.isShown(request) === true ? undefined : forbidden(token?.path),
  );
}

/** The admin API for who can read the token in the state directory. */
export async function tokenAccess(
  stateDirectory: string | undefined,
  log: Log,
): Promise<AdminApiOptions> {
  const token = stateDirectory === undefined
    ? undefined
    : new AdminToken(`${stateDirectory}/${ADMIN_TOKEN_FILE}`);
  await token?.make(log, "nobody may use the admin API");
  return {
    who: (request) => {
      if (token?.isShown(request) === true) {
        return { role: "operate", name: "admin.token" };
      }
      throw new AdminFailure(401, { message: "Nobody is known to ask" });
    },
  };
}

function forbidden(path: string | undefined): Response {
  const remedy = path === undefined
    ? "this server has no --state-dir to keep a token in"
    : `send what is in ${path} as "Authorization: Bearer …", as tunnel xds ` +
      "does where it can read that";
  return new Response(
    "/debug/* shows services, nodes and addresses, and not to every user of " +
      `this machine: ${remedy}; or start the server with --admin-debug=open\n`,
    {
      status: 403,
      headers: { "content-type": "text/plain; charset=utf-8" },
    },
  );
}
