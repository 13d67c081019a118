/**
 * Sessions of browsers: each has a cookie, which it got for a code that a user
 * of the API requested.
 *
 * A code is in the fragment of a URL, which browsers do not send; it is valid
 * once, and for a minute. A cookie is hidden from scripts (HttpOnly) and not
 * sent with requests of other sites (SameSite=Strict). Cookies do not tell
 * ports apart (RFC 6265 §8.5), so its name has the port in it.
 *
 * A cookie is a random number. Its rights are stored (`logins.ts`) under a hash
 * of it and the program's token, so that it outlives the process, can be ended,
 * and is worthless with another token. At each use the rights of the user who
 * signed it in are checked again.
 *
 * @module
 */

import { createHmac } from "node:crypto";
import type {
  AdminRole,
  LoginAnswer,
  LoginQuestion,
  SessionAnswer,
} from "../../proto/admin/api.ts";
import type { Log } from "../../platform/log/log.ts";
import {
  AdminFailure,
  type AdminRoute,
  type AdminWay,
  type AdminWho,
  failureAnswer,
  getRoute,
  jsonOf,
  postRoute,
} from "./admin_api.ts";
import { addLogin, type Login, Logins, WAY_LENGTH_MAX } from "./logins.ts";
import { jsonAnswer } from "./http_endpoints.ts";
import type { HttpHandler } from "./http_port.ts";

/** Time to open a link. */
export const CODE_MS = 60_000;

/** A working day; then one logs in again. */
export const SESSION_MS = 12 * 3_600_000;

/** The dashboard's path, on the same port. */
export const DASHBOARD_PATH = "/dashboard/";

const SESSION_PATH = "/v1/session";
const END_PATH = "/v1/session/end";

/** What sessions need of their port. */
export interface SessionsOptions {
  /** The port's URL for browsers, such as `http://127.0.0.1:8095`. */
  readonly origin: () => string;
  /**
   * The program's token; absent: cookies are valid as long as the process
   * lives.
   */
  readonly token: () => string | undefined;
  /** The file for logins; absent: none is written. */
  readonly path: () => string | undefined;
  /**
   * The present rights of a user who was identified so; `undefined`: none any
   * more.
   */
  readonly roleOf: (way: AdminWay) => AdminRole | undefined;
  readonly log: () => Log;
  readonly now?: () => number;
}

export class AdminSessions {
  readonly #codes = new Map<string, Login>();
  readonly #own = randomKey();
  #logins: Logins | undefined;

  constructor(private readonly options: SessionsOptions) {}

  /** Whose cookie it is. */
  whoOf(request: Pick<Request, "headers" | "url">): AdminWho | undefined {
    const cookie = cookieIn(request);
    if (cookie === undefined || cookie.length !== KEY_LENGTH) return undefined;
    const login = this.#kept.get(this.#idOf(cookie), this.#now);
    return login && this.#whoNow(login);
  }

  get #now(): number {
    return (this.options.now ?? Date.now)();
  }

  /** Its place has the port's number, which is not known before it is bound. */
  get #kept(): Logins {
    const { path, log } = this.options;
    return this.#logins ??= new Logins(path(), log());
  }

  /**
   * The role that was given, limited to the present role of the user who gave
   * it.
   */
  #whoNow({ name, role, way }: Login): AdminWho | undefined {
    const roleNow = this.options.roleOf(way);
    return roleNow &&
      { name, role: roleNow === "operate" ? role : "view", way };
  }

  /** Requests of users who are identified already. */
  get routes(): readonly AdminRoute[] {
    return [
      postRoute(
        "/v1/logins",
        ({ body, who }) => this.#login(body as LoginQuestion, who),
        "view",
      ),
      getRoute(SESSION_PATH, ({ who: { name, role } }): SessionAnswer => ({
        name,
        role,
      })),
    ];
  }

  /** A code becomes a cookie, and a cookie is ended, for any caller. */
  handler(others: HttpHandler, check: (request: Request) => void): HttpHandler {
    return async (request, peer) => {
      const { pathname } = new URL(request.url);
      const isOurs = pathname === SESSION_PATH || pathname === END_PATH;
      if (!isOurs || request.method !== "POST") return others(request, peer);
      try {
        check(request);
        if (pathname === END_PATH) return await this.#end(request);
        return await this.#begin(request, await jsonOf(request));
      } catch (error) {
        if (error instanceof AdminFailure) return failureAnswer(error);
        throw error;
      }
    };
  }

  #login({ role = "operate" }: LoginQuestion, who: AdminWho): LoginAnswer {
    if (role !== "view" && role !== "operate") {
      throw new AdminFailure(400, {
        message: 'The role is not known: wanted "view" or "operate"',
      });
    }
    const { way, role: by } = who;
    if (way === undefined || this.options.roleOf(way) === undefined) {
      throw new AdminFailure(403, {
        code: "TUN122",
        message: `Cannot sign a browser in for ${who.name}, whose role could ` +
          "not be looked up again: the machine's user database does not have " +
          "that user in --admin-socket-group",
      });
    }
    if (JSON.stringify(way).length > WAY_LENGTH_MAX) {
      throw new AdminFailure(403, {
        code: "TUN122",
        message: "Cannot sign a browser in: the certificate has more names " +
          "than are kept of one",
      });
    }
    const untilMs = this.#now + CODE_MS;
    const code = randomKey();
    const name = who.name.endsWith(BROWSER) ? who.name : who.name + BROWSER;
    const granted = by === "operate" ? role : "view";
    addLogin(this.#codes, code, { name, role: granted, way, by, untilMs });
    return {
      code,
      expiresAt: new Date(untilMs).toISOString(),
      url: `${this.options.origin()}${DASHBOARD_PATH}#code=${code}`,
    };
  }

  async #begin(request: Request, body: unknown): Promise<Response> {
    const { code = "" } = (body ?? {}) as Record<string, unknown>;
    // 256 random bits: to find one by the time that a look takes is hopeless.
    const login = this.#codes.get(String(code));
    this.#codes.delete(String(code));
    const who = login && login.untilMs > this.#now && this.#whoNow(login);
    if (!login || !who) {
      throw new AdminFailure(401, {
        message:
          "The code is not known, was used, or is older than a minute: " +
          "run tunnel dashboard again",
      });
    }
    const nowMs = this.#now;
    const untilMs = nowMs + SESSION_MS;
    const cookie = randomKey();
    await this.#kept.add(this.#idOf(cookie), { ...login, untilMs }, nowMs);
    const answer: SessionAnswer = { name: who.name, role: who.role };
    return withCookie(answer, request, cookie, SESSION_MS / 1_000);
  }

  #idOf(cookie: string): string {
    return createHmac("sha256", `session ${this.options.token() ?? this.#own}`)
      .update(cookie).digest("hex");
  }

  async #end(request: Request): Promise<Response> {
    const cookie = cookieIn(request) ?? "";
    const problem = await this.#kept.end(this.#idOf(cookie));
    const message = problem === undefined
      ? "Logged out"
      : `Logged out until the next start, when the cookie counts again: ${problem}`;
    return withCookie({ message }, request, "", 0);
  }
}

/** Appended to the name of the user who signed the browser in. */
const BROWSER = " (browser)";

/** Random bytes of codes and cookies. */
const KEY_LENGTH = 64;

function randomKey(): string {
  return crypto.getRandomValues(new Uint8Array(32)).toHex();
}

function cookieName(url: string): string {
  return `tunnel_admin_${new URL(url).port || "80"}`;
}

function cookieIn(
  { headers, url }: Pick<Request, "headers" | "url">,
): string | undefined {
  const wanted = `${cookieName(url)}=`;
  return (headers.get("cookie") ?? "").split("; ")
    .find((one) => one.startsWith(wanted))?.slice(wanted.length);
}

function withCookie(
  answer: unknown,
  { url }: Request,
  value: string,
  seconds: number,
): Response {
  const cookie = `${cookieName(url)}=${value}; Path=/; HttpOnly; ` +
    `SameSite=Strict; Max-Age=${seconds}`;
  return new Response(jsonAnswer(answer).body, {
    headers: {
      "content-type": "application/json",
      "cache-control": "no-store",
      "set-cookie": cookie,
    },
  });
}
