/**
 * Serves the admin API: routes with a method and a role, JSON in and JSON out,
 * and refusals in one form.
 *
 * It knows neither what the routes answer nor how a role is proven.
 *
 * @module
 */

import type { Log } from "../../platform/log/log.ts";
import { printable } from "../../platform/text/printable.ts";
import type { OperatorAction } from "../../policy/audit_trail.ts";
import { INTERNAL_ERROR } from "../../platform/errors/internal_errors.ts";
import {
  ADMIN_API,
  type AdminProblem,
  type AdminRole,
  type IndexAnswer,
} from "../../proto/admin/api.ts";
import { jsonAnswer } from "./http_endpoints.ts";
import type { HttpHandler, HttpPeer } from "./http_port.ts";

/** The caller, with its role. */
export interface AdminWho {
  readonly role: AdminRole;
  /** For logs and audits, such as `uid 1000` or `alice`. */
  readonly name: string;
  /** Absent: a parent of ours knows it. */
  readonly way?: AdminWay;
}

/** The caller's credential: enough to check its rights again later. */
export type AdminWay =
  /** Without a user: the kernel cannot be asked. */
  | { readonly kind: "socket"; readonly uid?: number }
  | {
    readonly kind: "token";
    readonly role: AdminRole;
    /** A hash of the token; a new token has a new one. */
    readonly mark: string;
  }
  | {
    readonly kind: "certificate";
    readonly commonName: string;
    readonly names: readonly string[];
    readonly organizations: readonly string[];
    readonly notAfterMs: number;
    /** A hash of the authorities that were trusted then. */
    readonly mark: string;
  };

/** One request, to be answered. */
export interface AdminRequest {
  readonly url: URL;
  /** The decoded NAME or ID of the path; `""`: it has none. */
  readonly segment: string;
  /** JSON; of a GET, `undefined`. */
  readonly body: unknown;
  readonly who: AdminWho;
  /** The client is gone. */
  readonly signal: AbortSignal;
}

/** One path of the API. */
export interface AdminRoute {
  readonly method: "GET" | "POST";
  /** Exact, or with one `:segment`, such as `/v1/nodes/:name/drain`. */
  readonly path: string;
  /** The expected body. */
  readonly role: AdminRole;
  /**
   * @returns JSON, whose lists may be iterables that are read while they are
   *   sent; or a `Response`.
   * @throws {AdminFailure}
   */
  answer(request: AdminRequest): unknown | Promise<unknown>;
}

/** Longest text of a question: a target, or a name. */
export const ASKED_LENGTH_MAX = 300;

export function isAskedText(found: unknown): found is string {
  return typeof found === "string" && found !== "" &&
    found.length <= ASKED_LENGTH_MAX;
}

/** A question, which every user may ask. */
export function getRoute(
  path: string,
  answer: AdminRoute["answer"],
): AdminRoute {
  return { method: "GET", path, role: "view", answer };
}

/** An action; or what is asked with a body, by users who may only ask. */
export function postRoute(
  path: string,
  answer: AdminRoute["answer"],
  role: AdminRole = "operate",
): AdminRoute {
  return { method: "POST", path, role, answer };
}

/** An answer that is no success. */
export class AdminFailure extends Error {
  override readonly name = "AdminFailure";

  /** @param status 400 and above. */
  constructor(readonly status: number, readonly problem: AdminProblem) {
    super(problem.message);
  }
}

/** In the state directory of each program. */
export const ADMIN_SOCKET = "admin.sock";

/**
 * One way to identify a caller.
 *
 * @throws {AdminFailure} When the caller is unknown, or has no rights.
 */
export type AdminDoor = (request: Request, peer: HttpPeer) => AdminWho;

/** @returns `undefined`: the caller is unknown. */
export function whoIf(
  door: AdminDoor,
  request: Request,
  peer: HttpPeer,
): AdminWho | undefined {
  try {
    return door(request, peer);
  } catch (error) {
    if (error instanceof AdminFailure) return undefined;
    throw error;
  }
}

/**
 * Identifies the caller. The connection stays open while the caller keeps its
 * rights: a continuing answer ends when they end.
 *
 * @throws {AdminFailure} When the caller is unknown.
 */
export function knownBy(
  door: AdminDoor,
  request: Request,
  peer: HttpPeer,
): AdminWho {
  const who = door(request, peer);
  const { role } = who;
  peer.known?.(role, () => whoIf(door, request, peer) !== undefined);
  return who;
}

/** What the API needs from the program that serves it. */
export interface AdminApiOptions {
  readonly who: AdminDoor;
  /** Something was done (POST), or was tried. */
  readonly did?: ((action: AdminAction) => void) | undefined;
}

/** For the audit log. */
export interface AdminAction {
  readonly who: AdminWho;
  /** The requested path. */
  readonly path: string;
  readonly status: number;
  /** Why it was not done. */
  readonly problem?: string;
}

/** Records users' actions: in the log, and in the audit log if there is one. */
export function actionLog(
  log: Pick<Log, "info">,
  audit?: (action: OperatorAction) => void,
): (action: AdminAction) => void {
  return ({ who, path, status, problem }) => {
    const action = `POST ${path}`;
    const shown = printable(`${who.name}: ${action}`, SHOWN_LENGTH_MAX);
    log.info(
      problem === undefined
        ? `admin: ${shown}`
        : `admin: ${shown} was refused: ${
          printable(problem, SHOWN_LENGTH_MAX)
        }`,
      { status },
    );
    const { name, role } = who;
    audit?.({
      who: { name, role },
      action,
      status,
      problem,
    });
  };
}

/** The name comes from a certificate, and the path from a request. */
const SHOWN_LENGTH_MAX = 300;

/** Answers what is below `/v1`. */
export function adminApi(
  routes: readonly AdminRoute[],
  options: AdminApiOptions,
): HttpHandler {
  const all: readonly AdminRoute[] = [indexRoute(routes), ...routes];
  const known = all.map((route) => ({ route, pattern: patternOf(route) }));
  return async (request, peer) => {
    const url = new URL(request.url);
    const { method, signal } = request;
    let who: AdminWho | undefined;
    const did = (result: Pick<AdminAction, "status" | "problem">) => {
      if (who === undefined || method !== "POST") return;
      options.did?.({ who, path: url.pathname, ...result });
    };
    let answer: unknown;
    try {
      who = knownBy(options.who, request, peer);
      const { route, segment } = routeFor(known, request, url);
      mayUse(route, who);
      peer.mayTake?.(ANSWER_MS);
      const body = route.method === "POST" ? await jsonOf(request) : undefined;
      answer = await route.answer({ url, segment, body, who, signal });
    } catch (error) {
      if (error instanceof AdminFailure) {
        did({ status: error.status, problem: error.message });
        return failureAnswer(error);
      }
      did({ status: 500, problem: INTERNAL_ERROR });
      // The code that serves the port reports it.
      throw error;
    }
    did({ status: 200 });
    return answer instanceof Response
      ? answer
      : new Response(jsonAnswer(answer).body, { headers: HEADERS });
  };
}

/** The questions and actions. */
function indexRoute(routes: readonly AdminRoute[]): AdminRoute {
  const paths = routes.map(({ method, path, role }) => ({
    method,
    path,
    role,
  }));
  const answer: IndexAnswer = { version: 1, paths };
  return getRoute(ADMIN_API, () => answer);
}

/** As every refusal is answered. */
export function failureAnswer({ status, problem }: AdminFailure): Response {
  return new Response(jsonAnswer(problem).body, { status, headers: HEADERS });
}

/** Answers are of a moment, for programs, and no page. */
const HEADERS = {
  "content-type": "application/json",
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
} as const;

/**
 * An authenticated caller may have to wait: for a dial, for an agent's answer,
 * or for five thousand nodes over a slow line.
 */
const ANSWER_MS = 20_000;

interface KnownRoute {
  readonly route: AdminRoute;
  readonly pattern: RegExp;
}

function patternOf({ path }: AdminRoute): RegExp {
  const parts = path.split("/").map((part) =>
    part.startsWith(":") ? "([^/]+)" : RegExp.escape(part)
  );
  return new RegExp(`^${parts.join("/")}$`);
}

function routeFor(
  known: readonly KnownRoute[],
  { method }: Request,
  { pathname }: URL,
): { readonly route: AdminRoute; readonly segment: string } {
  const here = known.flatMap(({ route, pattern }) => {
    const match = pattern.exec(pathname);
    return match === null ? [] : [{ route, raw: match[1] ?? "" }];
  });
  // An exact path counts before one with a segment.
  here.sort((a, b) => a.raw.length - b.raw.length);
  const wanted = method === "HEAD" ? "GET" : method;
  const found = here.find(({ route }) => route.method === wanted);
  if (found !== undefined) {
    return { route: found.route, segment: decoded(found.raw) };
  }
  if (here.length === 0) {
    throw new AdminFailure(404, {
      code: "TUN123",
      message: "This program has nothing to say at this path; GET /v1 has " +
        "those that there are",
    });
  }
  const methods = [...new Set(here.map(({ route }) => route.method))];
  throw new AdminFailure(405, {
    code: "TUN123",
    message: `This path is not for ${method}: wanted ${methods.join(" or ")}`,
  });
}

function decoded(raw: string): string {
  try {
    return decodeURIComponent(raw);
  } catch {
    throw new AdminFailure(400, {
      message: "The name in the path is not percent-encoded UTF-8",
    });
  }
}

function mayUse({ method, role }: AdminRoute, who: AdminWho): void {
  if (role === "view" || who.role === "operate") return;
  throw new AdminFailure(403, {
    code: "TUN122",
    message: `${who.name} may look here, and not ${
      method === "POST" ? "do" : "see"
    } this: it takes the role "operate"`,
  });
}

/**
 * The body of a request; nothing counts as `{}`.
 *
 * @throws {AdminFailure}
 */
export async function jsonOf(request: Request): Promise<unknown> {
  const text = await request.text();
  if (text.trim() === "") return {};
  const type = request.headers.get("content-type") ?? "";
  if (!/^application\/json(?:;|$)/i.test(type)) {
    throw new AdminFailure(415, {
      message: "The body is not JSON, or does not say so: wanted " +
        "Content-Type: application/json",
    });
  }
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new AdminFailure(400, { message: "The body cannot be read as JSON" });
  }
  if (typeof body === "object" && body !== null && !Array.isArray(body)) {
    return body;
  }
  throw new AdminFailure(400, {
    message: "The body is no object of JSON: wanted such as {}",
  });
}
