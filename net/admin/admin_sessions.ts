/**
 * Browsers that were let in: each has a cookie, got for a code that somebody who
 * may use the API was given for it.
 *
 * A code is in the fragment of a URL, which browsers send to nobody; it is good
 * once, and for a minute. A cookie is out of reach of scripts (HttpOnly) and
 * goes nowhere with requests of other sites (SameSite=Strict). Cookies do not
 * tell ports apart (RFC 6265 §8.5), so its name has the port in it.
 *
 * @module
 */

import type { AdminRole } from "../../proto/admin/api.ts";
import type {
  LoginAnswer,
  LoginQuestion,
  SessionAnswer,
} from "../../proto/admin/login.ts";
import {
  AdminFailure,
  type AdminRoute,
  type AdminWho,
  failureAnswer,
  jsonOf,
} from "./admin_api.ts";
import { jsonAnswer } from "./http_endpoints.ts";
import type { HttpHandler } from "./http_port.ts";

/** Time to open a link. */
export const CODE_MS = 60_000;

/** A working day; then one logs in again. */
export const SESSION_MS = 12 * 3_600_000;

/** Codes, and browsers, at once: people. The oldest goes for the next. */
export const CODES_MAX = 16;
export const SESSIONS_MAX = 64;

/** Where the dashboard is, on the same port. */
export const DASHBOARD_PATH = "/dashboard/";

const SESSION_PATH = "/v1/session";
const END_PATH = "/v1/session/end";

interface Entry {
  readonly who: AdminWho;
  readonly untilMs: number;
}

export class AdminSessions {
  readonly #codes = new Entries(CODES_MAX);
  readonly #sessions = new Entries(SESSIONS_MAX);
  readonly #now: () => number;
  readonly #origin: () => string;

  /** @param origin Where browsers find the port, such as `http://127.0.0.1:8095`. */
  constructor(origin: () => string, now: () => number = Date.now) {
    this.#origin = origin;
    this.#now = now;
  }

  /** Whose cookie it is. */
  whoOf(request: Pick<Request, "headers" | "url">): AdminWho | undefined {
    const key = cookieIn(request);
    return key === undefined
      ? undefined
      : this.#sessions.get(key, this.#now())?.who;
  }

  /** What is asked by those who are known already. */
  get routes(): readonly AdminRoute[] {
    return [
      {
        method: "POST",
        path: "/v1/logins",
        role: "view",
        answer: ({ body, who }) => this.#login(body as LoginQuestion, who),
      },
      {
        method: "GET",
        path: SESSION_PATH,
        role: "view",
        answer: ({ who: { name, role } }): SessionAnswer => ({ name, role }),
      },
    ];
  }

  /** A code becomes a cookie, and a cookie ends, whoever asks. */
  handler(others: HttpHandler, check: (request: Request) => void): HttpHandler {
    return async (request, peer) => {
      const { pathname } = new URL(request.url);
      const isOurs = pathname === SESSION_PATH || pathname === END_PATH;
      if (!isOurs || request.method !== "POST") return others(request, peer);
      try {
        check(request);
        if (pathname === END_PATH) return this.#end(request);
        return this.#begin(request, await jsonOf(request));
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
    const granted: AdminRole = who.role === "operate" ? role : "view";
    const untilMs = this.#now() + CODE_MS;
    const code = this.#codes.add({
      who: { name: `${who.name} (browser)`, role: granted },
      untilMs,
    });
    return {
      code,
      expiresAt: new Date(untilMs).toISOString(),
      url: `${this.#origin()}${DASHBOARD_PATH}#code=${code}`,
    };
  }

  #begin(request: Request, body: unknown): Response {
    const { code } = (body ?? {}) as Record<string, unknown>;
    const known = typeof code === "string"
      ? this.#codes.take(code, this.#now())
      : undefined;
    if (known === undefined) {
      throw new AdminFailure(401, {
        message:
          "The code is not known, was used, or is older than a minute: " +
          "run tunnel dashboard again",
      });
    }
    const { who } = known;
    const untilMs = this.#now() + SESSION_MS;
    const key = this.#sessions.add({ who, untilMs });
    const { name, role } = who;
    const answer: SessionAnswer = { name, role };
    return withCookie(answer, request, key, SESSION_MS / 1_000);
  }

  #end(request: Request): Response {
    const key = cookieIn(request);
    if (key !== undefined) this.#sessions.take(key, this.#now());
    return withCookie({ message: "Logged out" }, request, "", 0);
  }
}

/** Secrets, and what each is good for. */
class Entries {
  readonly #byKey = new Map<string, Entry>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  add(entry: Entry): string {
    const key = crypto.getRandomValues(new Uint8Array(32)).toHex();
    this.#byKey.set(key, entry);
    for (const oldest of this.#byKey.keys()) {
      if (this.#byKey.size <= this.#max) break;
      this.#byKey.delete(oldest);
    }
    return key;
  }

  // 256 random bits: to find one by the time that a look takes is hopeless.
  get(key: string, nowMs: number): Entry | undefined {
    const entry = this.#byKey.get(key);
    return entry !== undefined && entry.untilMs > nowMs ? entry : undefined;
  }

  take(key: string, nowMs: number): Entry | undefined {
    const entry = this.get(key, nowMs);
    this.#byKey.delete(key);
    return entry;
  }
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
