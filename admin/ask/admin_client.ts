/**
 * A client of the admin API (`proto/admin/`): over a unix socket, over loopback
 * with a token, or over TLS with a certificate.
 *
 * @module
 */

import { type Code, knownCode } from "../../proto/codes/codes.ts";
import type { AdminProblem } from "../../proto/admin/api.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import { codeOf, messageOf } from "../../platform/errors/error_code.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import { withDeadline } from "../../platform/time/deadline.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import {
  type HttpAnswer,
  HttpConnection,
  type HttpExchange,
  NO_ANSWER,
  NoAnswerYetError,
} from "../../net/channel/http_connection.ts";
import { headBytes } from "../../net/http1/head.ts";
import { connectToPath } from "../../net/stream/socket_connect.ts";
import type { Stream } from "../../net/stream/stream.ts";

/** The API's address, and the credentials for it. */
export type AdminAddress =
  | { readonly kind: "unix"; readonly path: string }
  | {
    readonly kind: "tcp";
    readonly host: string;
    readonly port: number;
    /** What is in its `admin.token`; absent: none is shown. */
    readonly token?: string | undefined;
    /**
     * The token's file, unless a flag names it: the token is shown only to a
     * program of that file's user. For loopback.
     */
    readonly tokenFile?: string | undefined;
    /** Why the token cannot be used, such as `x cannot be read`. */
    readonly tokenProblem?: string | undefined;
    /** Absent: plain HTTP. */
    readonly tls?: AdminTls;
  };

/** Files of PEM. */
export interface AdminTls {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  /** What the server's certificate must be for; absent: the host. */
  readonly serverName?: string | undefined;
}

/** Why there is no answer, or none that was wanted: one sentence. */
export class AdminError extends Error {
  override readonly name = "AdminError";

  constructor(
    message: string,
    /** The status of an answer; absent: there was none. */
    readonly status?: number,
    /** A stable code that `tunnel explain` knows. */
    readonly code?: string,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? {} : { cause });
  }

  /** The program's code, or the code for the kind of its answer. */
  get tunnelCode(): Code {
    const known = knownCode(this.code ?? "");
    if (known !== undefined) return known;
    if (this.status === undefined) return "TUN121";
    const isForbidden = this.status === 401 || this.status === 403;
    return isForbidden ? "TUN122" : "TUN123";
  }
}

/** How long an answer may take; a trace waits for a dial. */
export const ADMIN_ANSWER_MS = 30_000;

/** For name, TCP and handshake. */
const CONNECT_MS = 5_000;

/** A program that has not answered by then gets a small request … */
const PROBE_MS = 1_000;
/** … and without an answer to that, the waiting user is told … */
const NOTICE_MS = 2_000;
/** … and waits no longer: the program has stopped. */
const STANDSTILL_MS = 5_000;
/** Answered at once, if only with a refusal. */
const PROBE_PATH = "/v1/alive";

/** How one asks. */
interface AskOptions {
  readonly timers?: Timers;
  /** Is told a sentence while there is no sign of life. */
  readonly onWaiting?: (line: string) => void;
}

/** Asks one program about itself. */
export class AdminClient implements Disposable {
  readonly #closing = new AbortController();
  readonly #timers: Timers;
  readonly #onWaiting: (line: string) => void;
  /** Its name in sentences, such as `the server at 127.0.0.1:8095`. */
  readonly where: string;

  /** @param program Such as `server`, for sentences. */
  constructor(
    private readonly program: string,
    private readonly address: AdminAddress,
    { timers = systemTimers, onWaiting = () => {} }: AskOptions = {},
  ) {
    const place = address.kind === "unix"
      ? `unix:${address.path}`
      : hostPort(address.host, address.port);
    this.where = `the ${program} at ${place}`;
    this.#timers = timers;
    this.#onWaiting = onWaiting;
  }

  /**
   * @param path With its query, percent-encoded.
   * @throws {AdminError}
   */
  get<T>(path: string): Promise<T> {
    return this.#json<T>("GET", path);
  }

  /** @throws {AdminError} */
  post<T>(path: string, body: unknown = {}): Promise<T> {
    return this.#json<T>("POST", path, body);
  }

  /** Ends running requests. */
  close(): void {
    this.#closing.abort();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  get #isPlain(): boolean {
    return this.address.kind === "tcp" && this.address.tls === undefined;
  }

  async #json<T>(method: string, path: string, body?: unknown): Promise<T> {
    const late = () =>
      new Error(`no answer within ${ADMIN_ANSWER_MS / 1_000} s`);
    try {
      return await withDeadline({
        timers: this.#timers,
        timeoutMs: ADMIN_ANSWER_MS,
        late,
        signal: this.#closing.signal,
      }, async (signal) => {
        const response = await this.#ask(method, path, body, signal);
        return await response.json() as T;
      });
    } catch (error) {
      throw this.#failure(error);
    }
  }

  /** @throws {Error} Neither this nor any other request is answered. */
  async #ask(
    method: string,
    path: string,
    body: unknown,
    signal: AbortSignal,
  ): Promise<Response> {
    const asking = new AbortController();
    const giveUp = () => asking.abort(signal.reason);
    signal.addEventListener("abort", giveUp);
    const probing = new AbortController();
    let lives = false;
    const probe = () => {
      this.#request("GET", PROBE_PATH, undefined, probing.signal).then(
        () => lives = true,
        (error) => lives = error instanceof AdminError,
      );
    };
    const notice = () => {
      if (!lives) this.#onWaiting(`still waiting for ${this.where}`);
    };
    const doubt = () => {
      if (!lives) asking.abort(new Error(this.#standstill));
    };
    const steps = [
      [PROBE_MS, probe],
      [NOTICE_MS, notice],
      [STANDSTILL_MS, doubt],
    ] as const;
    const timers = steps.map(([ms, act]) => this.#timers.after(ms, act));
    try {
      return await this.#request(method, path, body, asking.signal);
    } finally {
      for (const timer of timers) timer.cancel();
      probing.abort();
    }
  }

  get #standstill(): string {
    return `it hangs (no answer within ${STANDSTILL_MS / 1_000} s); run ` +
      `\`tunnel doctor ${this.program}\``;
  }

  async #request(
    method: string,
    path: string,
    body: unknown,
    signal: AbortSignal,
  ): Promise<Response> {
    const bytes = requestBytes(this.address, method, path, body);
    const exchange = { method, bytes, signal };
    const answer = await this.#exchange(exchange).catch((error) => {
      // What only reads is asked once more (RFC 9110 §9.2.2).
      const isCutOff = error instanceof NoAnswerYetError && method === "GET";
      if (!isCutOff) throw error;
      return this.#exchange(exchange);
    });
    const { status, fields } = answer.head;
    const isPacked = fields.list("content-encoding").includes("gzip");
    const content = answer.body !== null && isPacked
      ? answer.body.pipeThrough(new DecompressionStream("gzip"))
      : answer.body;
    const response = new Response(content, { status });
    if (status === 200) return response;
    throw await this.#refusal(response);
  }

  async #exchange(exchange: HttpExchange): Promise<HttpAnswer> {
    const stream = await this.#connect(exchange.signal);
    const connection = new HttpConnection(stream, (idle) => idle.close());
    return await connection.ask(exchange);
  }

  #connect(signal: AbortSignal): Promise<Stream> {
    const late = () => new Error(`no answer within ${CONNECT_MS / 1_000} s`);
    const timing = {
      timers: this.#timers,
      timeoutMs: CONNECT_MS,
      late,
      signal,
    };
    return withDeadline(timing, (signal) => connect(this.address, signal));
  }

  async #refusal(response: Response): Promise<AdminError> {
    const { status } = response;
    const text = (await response.text()).slice(0, PROBLEM_LENGTH_MAX);
    const { message, code } = problemIn(text);
    const isUnknown = status === 401 || status === 403 && !text.startsWith("{");
    const address = this.address;
    const tokenProblem = isUnknown && address.kind === "tcp" &&
      this.#isPlain && address.tokenProblem;
    const said = tokenProblem
      ? `it answers only its own user, and ${tokenProblem}`
      : status === 404 && message === NO_PAGE
      ? `that is the health port of a program of ours, or another HTTP server; ${ADMIN_PORTS}`
      : message ?? `it answered ${status}`;
    // The program's own refusal is a whole sentence about its cause: "Cannot
    // ask" would add nothing.
    const isWhole = /^(?:Cannot|No connection) /.test(said);
    const sentence = isWhole ? said : `Cannot ask ${this.where}: ${said}`;
    return new AdminError(sentence, status, code);
  }

  #failure(error: unknown): unknown {
    if (error instanceof AdminError || !(error instanceof Error)) return error;
    const problem = error instanceof SyntaxError
      ? `what answers there is no program of ours; ${ADMIN_PORTS}`
      : error.message === NO_ANSWER && this.#isPlain
      ? "it hangs up on HTTP, as the port for agents does, which speaks TLS; " +
        ADMIN_PORTS
      // Sentences of TLS and of files, as the end of ours.
      : PROBLEMS.get(codeOf(error)) ??
        messageOf(error).replace(/^Cannot /, "cannot ");
    return new AdminError(
      `Cannot ask ${this.where}: ${problem}`,
      undefined,
      undefined,
      error,
    );
  }
}

/** The answer of all our other ports to the admin port's paths. */
const NO_PAGE = "404 page not found";

const ADMIN_PORTS = "give the admin port: 8095 of a server, 8094 of an " +
  "agent, 8096 of a proxy, unless --admin-port says another";

/**
 * Limit on a refusal, which is one sentence; more comes from a foreign program.
 */
const PROBLEM_LENGTH_MAX = 2_000;

const PROBLEMS: ReadonlyMap<string, string> = new Map([
  ["ECONNREFUSED", "no program answers there; is it running?"],
  ["ENOENT", "there is no such socket; is it running?"],
  ["EACCES", "its socket is not for this user; run this as its user or root"],
  ["ETIMEDOUT", "the connection timed out"],
  ["EHOSTUNREACH", "there is no route to the host"],
  ["ENETUNREACH", "the network is unreachable"],
]);

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function problemIn(
  text: string,
): { readonly [K in keyof AdminProblem]?: string | undefined } {
  try {
    const { message, code } = JSON.parse(text) as Record<string, unknown>;
    return { message: textOf(message), code: textOf(code) };
  } catch {
    const [line = ""] = text.trim().split("\n");
    return line === "" ? {} : { message: line };
  }
}

/** A socket is all that most commands need: names and TLS are loaded late. */
async function connect(
  address: AdminAddress,
  signal: AbortSignal,
): Promise<Stream> {
  if (address.kind === "unix") return await connectToPath(address.path, signal);
  const { connectToAdmin } = await import("./admin_connect.ts");
  return await connectToAdmin(address, signal);
}

function requestBytes(
  address: AdminAddress,
  method: string,
  path: string,
  body: unknown,
): Uint8Array {
  const isTcp = address.kind === "tcp";
  const lines = [
    `${method} ${path} HTTP/1.1`,
    `host: ${isTcp ? hostPort(address.host, address.port) : "localhost"}`,
    // On one machine compression takes longer than sending.
    ...isTcp ? ["accept-encoding: gzip"] : [],
  ];
  if (isTcp && address.token !== undefined) {
    lines.push(`authorization: Bearer ${address.token}`);
  }
  if (body === undefined) return headBytes(lines);
  const content = new TextEncoder().encode(JSON.stringify(body));
  lines.push(
    "x-tunnel-admin: 1",
    "content-type: application/json",
    `content-length: ${content.length}`,
  );
  return joinedBytes([headBytes(lines), content]);
}
