/**
 * Talks to a Kubernetes API server: one request, one answer, with a deadline,
 * patience where the server asks for it, and errors that say what to do.
 *
 * JSON only. Watches and leases are in other files; this one knows HTTP.
 *
 * A caller's `signal` ends every request, with its reason.
 *
 * Reading order: `KubernetesClient.get`, then `#send`, then `#attempt`.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { Backoff } from "../../proto/sync/backoff.ts";
import {
  type BucketSize,
  TokenBucket,
} from "../../proto/streams/token_bucket.ts";
import { responseText } from "../../net/http1/refusal.ts";
import type { KubernetesAccess } from "./access.ts";
import { isSlip } from "../../platform/errors/internal_errors.ts";
import { TlsHandshakeError } from "../../net/tls/trust/tls_errors.ts";
import {
  errorFromAnswer,
  KubernetesError,
  NoAnswerError,
  parseStatus,
} from "./errors.ts";
import { HttpClients } from "./http_clients.ts";
import { pause } from "../../platform/time/pause.ts";

/** How long a request may take with all that it waits for, by default. */
export const REQUEST_TIMEOUT_MS = 30_000;

/** Largest answer that is read: a page of 500 large objects is a tenth. */
export const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

/** Longest wait between two attempts of one request. */
const RETRY_CAP_MS = 30_000;

/**
 * Default limit: requests per second, and at once; client-go: 5 and 10. Many
 * agents that return together must not overload the API server, which the whole
 * cluster shares.
 */
export const DEFAULT_RATE: BucketSize = { perSecond: 100, burst: 200 };

/** What a client needs. */
export interface KubernetesClientOptions {
  /** Asked for with each request: it may be read with the first. */
  readonly access: () => KubernetesAccess;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly rate?: BucketSize | undefined;
}

/** How to ask. */
export interface RequestOptions {
  readonly query?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal;
  /** Over all attempts; default {@linkcode REQUEST_TIMEOUT_MS}. */
  readonly timeoutMs?: number;
  /**
   * The request may be sent twice without harm. Absent: only a GET may. A
   * caller that retries by itself, and wants to see each failure, sets it to
   * false.
   */
  readonly isRepeatable?: boolean;
}

interface ApiRequest extends RequestOptions {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly body?: unknown;
}

export class KubernetesClient implements Disposable {
  /** Holds the credentials, so no debugger's print of this object may show it. */
  readonly #options: KubernetesClientOptions;
  readonly #rate: TokenBucket;
  readonly #clients = new HttpClients();

  constructor(options: KubernetesClientOptions) {
    this.#options = options;
    const { rate = DEFAULT_RATE, timers } = options;
    this.#rate = new TokenBucket(rate, timers.now());
  }

  /** For messages. */
  get server(): string {
    return this.#options.access().server;
  }

  /** CAs of the API server's certificate, PEM; absent: public ones. */
  get authority(): string | undefined {
    return this.#options.access().authority();
  }

  /** The default namespace of this process. */
  get namespace(): string {
    return this.#options.access().namespace;
  }

  /** @throws {KubernetesError | NeighbourConfigError} */
  get<T>(path: string, options: RequestOptions = {}): Promise<T> {
    return this.#json<T>({ ...options, method: "GET", path });
  }

  /** @throws {KubernetesError | NeighbourConfigError} */
  create<T>(path: string, body: T, options: RequestOptions = {}): Promise<T> {
    return this.#json<T>({ ...options, method: "POST", path, body });
  }

  /**
   * Writes an object back. With its `resourceVersion` in it, another client's
   * change is not lost: the answer is 409 then.
   *
   * @throws {KubernetesError | NeighbourConfigError}
   */
  replace<T>(path: string, body: T, options: RequestOptions = {}): Promise<T> {
    return this.#json<T>({ ...options, method: "PUT", path, body });
  }

  /**
   * @param resourceVersion Deletes only this version: 409 otherwise.
   * @throws {KubernetesError | NeighbourConfigError}
   */
  async delete(
    path: string,
    { resourceVersion, ...options }: RequestOptions & {
      readonly resourceVersion?: string | undefined;
    } = {},
  ): Promise<void> {
    const body = {
      apiVersion: "v1",
      kind: "DeleteOptions",
      ...(resourceVersion === undefined
        ? {}
        : { preconditions: { resourceVersion } }),
    };
    await this.#json<unknown>({ ...options, method: "DELETE", path, body });
  }

  /**
   * Opens a body without end. The time limit is for its beginning; `signal`
   * ends it.
   *
   * @throws {KubernetesError | NeighbourConfigError}
   */
  stream(
    path: string,
    options: RequestOptions & { readonly signal: AbortSignal },
  ): Promise<ReadableStream<Uint8Array>> {
    return this.#send(
      { ...options, method: "GET", path },
      (response) => Promise.resolve(response.body ?? new Blob().stream()),
    );
  }

  /** Connections are not used again. What is read already is not cut. */
  [Symbol.dispose](): void {
    this.#clients[Symbol.dispose]();
  }

  #json<T>(request: ApiRequest): Promise<T> {
    return this.#send(request, async (response) => {
      const text = await readText(response, request.path);
      try {
        return JSON.parse(text) as T;
      } catch (error) {
        throw new KubernetesError(
          0,
          "",
          `Cannot ${request.method} ${request.path}: the answer is no JSON; check ` +
            "that the address is an API server's",
          { cause: error },
        );
      }
    });
  }

  /** Attempts until one succeeds, no more make sense, or time is over. */
  async #send<T>(
    request: ApiRequest,
    use: (response: Response) => Promise<T>,
  ): Promise<T> {
    const { access, timers, random } = this.#options;
    const { timeoutMs = REQUEST_TIMEOUT_MS, signal } = request;
    using deadline = new RequestDeadline(timers, timeoutMs, signal);
    const backoff = new Backoff({ capMs: RETRY_CAP_MS, random });
    let isFresh = false;
    let error: KubernetesError | undefined;
    while (true) {
      const outcome = await this.#attempt(request, deadline, use, error);
      if (outcome.kind === "done") return outcome.value;
      const { retryAfterMs } = outcome;
      error = outcome.error;
      if (error.code === 401 && !isFresh) {
        isFresh = true;
        access().rejected();
        continue;
      }
      if (!isWorthRepeating(request, error, retryAfterMs)) throw error;
      const waitMs = Math.max(backoff.nextMs(), retryAfterMs ?? 0);
      const mayWait = waitMs < deadline.leftMs && await deadline.wait(waitMs);
      request.signal?.throwIfAborted();
      if (!mayWait) throw error;
    }
  }

  async #attempt<T>(
    request: ApiRequest,
    deadline: RequestDeadline,
    use: (response: Response) => Promise<T>,
    last: KubernetesError | undefined,
  ): Promise<Outcome<T>> {
    const what = `${request.method} ${request.path}`;
    const { timers } = this.#options;
    const waitMs = this.#rate.reserve(timers.now(), deadline.leftMs);
    if (waitMs === undefined || !await deadline.wait(waitMs)) {
      request.signal?.throwIfAborted();
      // Why it is asked again says more than that its time is over.
      throw last ?? new KubernetesError(
        0,
        "",
        `Cannot ${what}: too many requests wait for their turn already; ` +
          "raise --kubeconfig-qps and --kubeconfig-burst",
      );
    }
    const access = this.#options.access();
    const { authorization, keyPair } = await access.credential();
    const { proxyUrl } = access;
    const authority = access.authority();
    const client = this.#clients.of({ authority, keyPair, proxyUrl });
    const headers = headersOf(request, authorization);
    try {
      // Redirects are not followed: they would take the credential elsewhere.
      const response = await client.request({
        method: request.method,
        url: this.#urlOf(request),
        headers,
        body: request.body === undefined
          ? undefined
          : JSON.stringify(request.body),
        signal: deadline.signal,
      });
      if (response.ok) return { kind: "done", value: await use(response) };
      const body = await readText(response, request.path);
      const error = errorFromAnswer(what, response.status, body);
      const retryAfterMs = retryAfter(response, body);
      return { kind: "failed", error, retryAfterMs };
    } catch (error) {
      if (error instanceof KubernetesError) throw error;
      request.signal?.throwIfAborted();
      if (!(error instanceof Error) || isSlip(error)) throw error;
      // A connection that gives no answer may never give one again.
      this.#clients.renew();
      if (deadline.isOver && last !== undefined) throw last;
      return {
        kind: "failed",
        error: this.#noAnswer(what, deadline, error),
      };
    }
  }

  #urlOf({ path, query }: ApiRequest): string {
    const search = new URLSearchParams(query).toString();
    return `${this.server}${path}${search && `?${search}`}`;
  }

  #noAnswer(
    request: string,
    deadline: RequestDeadline,
    error: Error,
  ): KubernetesError {
    const what = deadline.isOver
      ? `no answer from ${this.server} in ${deadline.limitMs} ms`
      : `no answer from ${this.server}: ${connectionProblem(error)}`;
    return new NoAnswerError(request, what, { cause: error });
  }
}

type Outcome<T> =
  | { readonly kind: "done"; readonly value: T }
  | {
    readonly kind: "failed";
    readonly error: KubernetesError;
    readonly retryAfterMs?: number | undefined;
  };

function headersOf(
  request: ApiRequest,
  authorization: string | undefined,
): Record<string, string> {
  return {
    accept: "application/json",
    ...(request.body === undefined
      ? {}
      : { "content-type": "application/json" }),
    ...(authorization === undefined ? {} : { authorization }),
  };
}

/**
 * 429 means that nothing was done, and so does a refusal that says when to come
 * back; after anything else a request may have had its effect.
 */
function isWorthRepeating(
  { method, isRepeatable }: ApiRequest,
  { code }: KubernetesError,
  retryAfterMs: number | undefined,
): boolean {
  if (code === 429 || (code >= 500 && retryAfterMs !== undefined)) return true;
  return (code === 0 || code >= 500) && (isRepeatable ?? method === "GET");
}

function retryAfter(response: Response, body: string): number | undefined {
  const header = response.headers.get("retry-after") ?? "";
  if (/^\d{1,6}$/.test(header)) return Number(header) * 1000;
  const seconds = parseStatus(body)?.details?.retryAfterSeconds;
  return typeof seconds === "number" && seconds > 0
    ? seconds * 1000
    : undefined;
}

async function readText(response: Response, path: string): Promise<string> {
  const text = await responseText(response, ANSWER_BYTES_MAX);
  if (text !== undefined) return text;
  throw new KubernetesError(
    0,
    "",
    `Cannot read the answer to ${path}: it is ` +
      `longer than ${ANSWER_BYTES_MAX} bytes`,
  );
}

/** Why there is no answer, in words, and what to do where that is known. */
function connectionProblem(error: Error): string {
  const { message } = error;
  const isUnknown = error instanceof TlsHandshakeError &&
    error.failure === "untrusted-certificate";
  return isUnknown && !message.includes("give the CA")
    ? `${message}; give the CA of its certificate`
    : message;
}

// The time that is left for a request, with all its attempts and waits, and
// what ends it early.

export class RequestDeadline implements Disposable {
  /** Ends a running request, at the deadline or at the caller's wish. */
  readonly signal: AbortSignal;
  readonly #endMs: number;
  readonly #timer: Timer;
  #isOver = false;

  constructor(
    private readonly timers: Timers,
    readonly limitMs: number,
    signal?: AbortSignal,
  ) {
    const controller = new AbortController();
    this.#endMs = timers.now() + limitMs;
    this.#timer = timers.after(limitMs, () => {
      this.#isOver = true;
      controller.abort(new DOMException("time is over", "TimeoutError"));
    });
    this.signal = signal === undefined
      ? controller.signal
      : AbortSignal.any([controller.signal, signal]);
  }

  /** Whether time has run out. */
  get isOver(): boolean {
    return this.#isOver;
  }

  get leftMs(): number {
    return this.#endMs - this.timers.now();
  }

  /** @returns Whether there is any sense in going on. */
  async wait(durationMs: number): Promise<boolean> {
    if (durationMs > 0) await pause(this.timers, durationMs, this.signal);
    return !this.signal.aborted;
  }

  /** From here on there is no deadline. */
  [Symbol.dispose](): void {
    this.#timer.cancel();
  }
}
