/**
 * Browsers that were let in: each has a cookie, got for a code that somebody who
 * may use the API was given for it.
 *
 * A code is in the fragment of a URL, which browsers send to nobody; it is good
 * once, and for a minute. A cookie is out of reach of scripts (HttpOnly) and
 * goes nowhere with requests of other sites (SameSite=Strict). Cookies do not
 * tell ports apart (RFC 6265 §8.5), so its name has the port in it.
 *
 * A cookie says whose it is and until when, signed with the program's token: it
 * outlives the process, or a dashboard would be locked out by each restart that it
 * is there to watch. Another token makes all of them worthless.
 *
 * @module
 */

import { createHmac, timingSafeEqual } from "node:crypto";
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

/** Codes, and cookies that were ended, at once: the oldest goes for the next. */
export const CODES_MAX = 16;
export const ENDED_MAX = 256;

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
  readonly #ended = new Entries(ENDED_MAX);
  /** Where there is no token: good as long as the process. */
  readonly #own = randomKey();
  readonly #token: () => string | undefined;
  readonly #now: () => number;
  readonly #origin: () => string;

  /**
   * @param origin Where browsers find the port, such as `http://127.0.0.1:8095`.
   * @param token What signs cookies.
   */
  constructor(
    origin: () => string,
    token: () => string | undefined,
    now: () => number = Date.now,
  ) {
    this.#origin = origin;
    this.#token = token;
    this.#now = now;
  }

  /** Whose cookie it is. */
  whoOf(request: Pick<Request, "headers" | "url">): AdminWho | undefined {
    const cookie = cookieIn(request);
    if (cookie === undefined || cookie.length > COOKIE_LENGTH_MAX) {
      return undefined;
    }
    const [payload = "", signature = ""] = cookie.split(".");
    const nowMs = this.#now();
    if (!isSame(signature, this.#signatureOf(payload))) return undefined;
    if (this.#ended.get(signature, nowMs) !== undefined) return undefined;
    // It is ours: it has what was put there.
    const { who, untilMs } = JSON.parse(textOf(payload)) as Entry;
    return untilMs > nowMs ? who : undefined;
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
    const { name, role } = who;
    const entry: Entry & { readonly id: string } = {
      who: { name, role },
      untilMs,
      // Each can be ended alone.
      id: randomKey().slice(0, 16),
    };
    const bytes = new TextEncoder().encode(JSON.stringify(entry));
    const payload = bytes.toBase64({
      alphabet: "base64url",
      omitPadding: true,
    });
    const cookie = `${payload}.${this.#signatureOf(payload)}`;
    const answer: SessionAnswer = { name, role };
    return withCookie(answer, request, cookie, SESSION_MS / 1_000);
  }

  #signatureOf(payload: string): string {
    return createHmac("sha256", `session ${this.#token() ?? this.#own}`)
      .update(payload).digest("hex");
  }

  #end(request: Request): Response {
    const who = this.whoOf(request);
    const [, signature = ""] = cookieIn(request)?.split(".") ?? [];
    if (who !== undefined) {
      this.#ended.set(signature, { who, untilMs: this.#now() + SESSION_MS });
    }
    return withCookie({ message: "Logged out" }, request, "", 0);
  }
}

/** Longer ones are not ours. */
const COOKIE_LENGTH_MAX = 2_048;

function randomKey(): string {
  return crypto.getRandomValues(new Uint8Array(32)).toHex();
}

function isSame(given: string, wanted: string): boolean {
  const [a, b] = [given, wanted].map((text) => new TextEncoder().encode(text));
  return a!.length === b!.length && timingSafeEqual(a!, b!);
}

function textOf(payload: string): string {
  const bytes = Uint8Array.fromBase64(payload, { alphabet: "base64url" });
  return new TextDecoder().decode(bytes);
}

/** Secrets, and what each is good for. */
class Entries {
  readonly #byKey = new Map<string, Entry>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  add(entry: Entry): string {
    const key = randomKey();
    this.set(key, entry);
    return key;
  }

  set(key: string, entry: Entry): void {
    this.#byKey.set(key, entry);
    for (const oldest of this.#byKey.keys()) {
      if (this.#byKey.size <= this.#max) break;
      this.#byKey.delete(oldest);
    }
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
