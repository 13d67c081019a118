/**
 * Who is shown what a server knows: `/debug/*` on the admin port. The port is on
 * loopback, where every user of the machine is, and nobody says who he is; so it
 * is shown to who can read a file that only the server's user can read.
 *
 * @module
 */

import { timingSafeEqual } from "node:crypto";
import { replaceFile } from "../../platform/files/atomic_file.ts";
import {
  isSystemError,
  systemProblem,
} from "../../platform/files/file_error.ts";
import {
  checkPrivate,
  PrivateFileError,
} from "../../platform/files/private_files.ts";
import { guardedRoutes, type Routes } from "../../net/admin/http_endpoints.ts";
import type { Log } from "../../platform/log/log.ts";
import type { AdminDebug } from "../options.ts";

/** In the state directory; see `StateDirectory`. */
export const ADMIN_TOKEN_FILE = "admin.token";

/** What is known of the server. */
export interface AdminAccessOptions {
  readonly access: AdminDebug;
  /** Absent: there is no place for a token, and all requests are refused. */
  readonly stateDirectory?: string;
  readonly log: Log;
}

const TOKEN = /^[0-9a-f]{64}$/;

/**
 * `routes` for those who may. The file is made when it is missing; servers that
 * share a state directory share it.
 */
export async function guardDebug(
  routes: Routes,
  { access, stateDirectory, log }: AdminAccessOptions,
): Promise<Routes> {
  if (access === "open") return routes;
  const path = stateDirectory && `${stateDirectory}/${ADMIN_TOKEN_FILE}`;
  if (path !== undefined) await makeToken(path, log);
  return guardedRoutes(routes, (request) => {
    const token = path === undefined ? undefined : tokenIn(path);
    return token !== undefined && isShown(request, token)
      ? undefined
      : forbidden(path);
  });
}

async function makeToken(path: string, log: Log): Promise<void> {
  try {
    if (tokenIn(path) !== undefined) return await checkPrivate(path, "read");
  } catch (error) {
    if (!(error instanceof PrivateFileError)) throw error;
    log.warn(`${error.message}; another token was put there`);
  }
  const token = crypto.getRandomValues(new Uint8Array(32)).toHex();
  try {
    await replaceFile(path, `${token}\n`);
  } catch (error) {
    if (!isSystemError(error)) throw error;
    log.warn(
      `Cannot write ${path}: ${systemProblem(error)}; nobody is shown /debug/*`,
    );
  }
}

/** Read each time: another server may have made it anew. */
function tokenIn(path: string): string | undefined {
  try {
    const text = Deno.readTextFileSync(path).trim();
    return TOKEN.test(text) ? text : undefined;
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}

function isShown(request: Request, token: string): boolean {
  const shown = request.headers.get("authorization") ?? "";
  const bytes = (text: string) => new TextEncoder().encode(text);
  const [given, wanted] = [bytes(shown), bytes(`Bearer ${token}`)];
  return given.length === wanted.length && timingSafeEqual(given, wanted);
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
