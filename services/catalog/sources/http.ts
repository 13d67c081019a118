/**
 * Services and endpoints from a URL that is asked again and again, in the
 * format of the file source.
 *
 * A server that gives an ETag is asked only whether anything is new (RFC 9110
 * §13.1.2). When its answer is no good document, the last good one stays in
 * use.
 *
 * Reading order: `#follow`, `#poll`, `#ask`.
 *
 * @module
 */

import type { Code } from "../../../proto/codes/codes.ts";
import { HttpClients } from "../../../neighbours/kubernetes/http_clients.ts";
import { withDeadline } from "../../../platform/time/deadline.ts";
import { worldly } from "../../../platform/errors/internal_errors.ts";
import {
  type Next,
  type Run,
  supervise,
} from "../../../platform/time/supervise.ts";
import type {
  HttpClient,
  HttpRequest,
} from "../../../net/channel/http_client.ts";
import { NoAnswerYetError } from "../../../net/channel/http_connection.ts";
import { MessageError, responseText } from "../../../net/http1/refusal.ts";
import { LookupError } from "../../../net/names/resolver.ts";
import { TlsHandshakeError } from "../../../net/tls/trust/tls_errors.ts";
import { codeOf } from "../../../platform/errors/error_code.ts";
import type { Timers } from "../../../proto/sync/clock.ts";
import type { Sink, Source } from "../model/source.ts";
import {
  CatalogDocumentError,
  DOCUMENT_BYTES_MAX,
  readCatalogDocument,
} from "./document/catalog_document.ts";
import { NeighbourConfigError } from "../../../neighbours/tls_files.ts";

/** Time between two requests, by default; a tenth more or less of it. */
export const POLL_INTERVAL_MS = 10_000;

/** Deadline of one request with its whole answer. */
export const POLL_TIMEOUT_MS = 30_000;

/** Longest wait after failures, whatever the server asks for. */
export const HTTP_RETRY_CAP_MS = 60_000;

export interface HttpSourceOptions {
  /** `http:` or `https:`. */
  readonly url: string;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly intervalMs?: number;
  /** Absent: the server has a public certificate, and is shown nothing. */
  readonly access?: HttpSourceAccess | undefined;
}

/** Whom to believe that they are the server, and what to show it. */
export interface HttpSourceAccess {
  /** PEM; absent: public ones. */
  authority(): string | undefined;
  /** A bearer token; absent: none. */
  token?(): Promise<string>;
  /** The server answered 401: the next credentials must be read anew. */
  rejected(): void;
}

/** A document, or the word that there is no other one. */
type Answer =
  | { readonly kind: "document"; readonly text: string; readonly etag: string }
  | { readonly kind: "unchanged" };

/** A server that gave no document. */
class PollError extends Error {
  override readonly name = "PollError";
  readonly tunnelCode: Code = "TUN701";

  constructor(message: string, readonly retryAfterMs = 0) {
    super(message);
  }
}

/** Why a document could not be fetched or used. */
interface Trouble {
  readonly reason: string;
  /** How long the server asks its clients to wait. */
  readonly retryAfterMs: number;
}

export class HttpSource implements Source {
  readonly name = "http";
  readonly #stopping = new AbortController();
  #sink: Sink | undefined;
  /** That the catalog has now, and what the server calls it. */
  #text: string | undefined;
  #etag = "";
  #polls = Promise.resolve();
  /** When the server is asked again. */
  #nextMs = 0;
  #following: Promise<void> | undefined;
  readonly #clients = new HttpClients();

  constructor(private readonly options: HttpSourceOptions) {}

  start(sink: Sink): void {
    this.#sink = sink;
    const { timers, random } = this.options;
    this.#following = supervise<Trouble>({
      timers,
      random,
      capMs: HTTP_RETRY_CAP_MS,
      signal: this.#stopping.signal,
      run: (run) => this.#follow(run),
      problemOf,
      onProblem: (trouble, retryMs) => {
        this.#nextMs = timers.now() + retryMs;
        this.#failed(trouble);
      },
      leastMs: ({ retryAfterMs }) => Math.min(retryAfterMs, HTTP_RETRY_CAP_MS),
    });
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#following;
    await this.#polls;
    this.#clients[Symbol.dispose]();
  }

  /** A server may call another document by the name of the one that it gave. */
  async reconcile(): Promise<void> {
    try {
      await this.#inTurn(async () => {
        await this.#poll("news");
        await this.#poll("all");
      });
    } catch (error) {
      if (!this.#stopping.signal.aborted) this.#failed(problemOf(error));
    }
  }

  async #follow(run: Run): Promise<Next> {
    const { timers, random, intervalMs = POLL_INTERVAL_MS } = this.options;
    await this.#inTurn(() => this.#poll("news"));
    run.succeeded();
    const afterMs = intervalMs * (.9 + random() / 5);
    this.#nextMs = timers.now() + afterMs;
    return { afterMs };
  }

  /** One question at a time: answers that overtake each other would go back. */
  #inTurn(act: () => Promise<void>): Promise<void> {
    const done = this.#polls.then(act);
    // A failed run must not keep the next one from its turn.
    this.#polls = done.catch(() => {});
    return done;
  }

  /** @param asking `all`: asks for the whole document, even if it is known. */
  async #poll(asking: "news" | "all"): Promise<void> {
    const sink = this.#sink!;
    const { signal } = this.#stopping;
    if (signal.aborted) return;
    const answer = await this.#askInTime(asking);
    if (answer.kind === "document" && answer.text !== this.#text) {
      const document = readCatalogDocument(answer.text);
      if (signal.aborted) return;
      const isDrift = this.#text !== undefined && answer.etag !== "" &&
        answer.etag === this.#etag;
      sink[isDrift ? "repair" : "set"](document);
      this.#text = answer.text;
    }
    if (answer.kind === "document") this.#etag = answer.etag;
    if (!signal.aborted) sink.synced();
  }

  #failed({ reason }: Trouble): void {
    const { url, timers } = this.options;
    this.#sink!.failed(
      `Cannot use ${withoutSecrets(url)}: ${reason}`,
      Math.max(0, this.#nextMs - timers.now()),
    );
  }

  #askInTime(asking: "news" | "all"): Promise<Answer> {
    return withDeadline({
      timers: this.options.timers,
      timeoutMs: POLL_TIMEOUT_MS,
      late: () => new PollError(`no answer in ${POLL_TIMEOUT_MS} ms`),
      signal: this.#stopping.signal,
    }, (signal) => this.#ask(asking, signal));
  }

  async #ask(asking: "news" | "all", signal: AbortSignal): Promise<Answer> {
    const { access } = this.options;
    const token = await access?.token?.();
    const headers = {
      accept: "application/yaml, application/json, */*;q=0.5",
      ...asking === "news" && this.#etag !== ""
        ? { "if-none-match": this.#etag }
        : {},
      ...token === undefined ? {} : { authorization: `Bearer ${token}` },
    };
    const response = await this.#fetch(headers, signal);
    if (response.status === 401) access?.rejected();
    if (response.status === 304 && this.#text !== undefined) {
      return { kind: "unchanged" };
    }
    if (!response.ok) {
      await response.body?.cancel();
      throw new PollError(
        `it answered ${response.status}, 200 or 304 is wanted`,
        retryAfterMs(response),
      );
    }
    const text = await readText(response);
    const etag = response.headers.get("etag") ?? "";
    return { kind: "document", text, etag };
  }

  #fetch(
    headers: Record<string, string>,
    signal: AbortSignal,
  ): Promise<Response> {
    const { url, access } = this.options;
    const authority = access?.authority();
    if (authority === undefined) return fetch(url, { headers, signal });
    const material = { authority, keyPair: undefined, proxyUrl: undefined };
    return follow(this.#clients.of(material), { url, headers, signal });
  }
}

/** Follows redirects as `fetch` does, but only so many (RFC 9110 §15.4). */
const REDIRECTS_MAX = 5;

async function follow(
  client: HttpClient,
  request: Omit<HttpRequest, "method">,
): Promise<Response> {
  const { signal } = request;
  let { url, headers } = request;
  for (let count = 0;; count++) {
    const response = await client.request({
      method: "GET",
      url,
      headers,
      signal,
    });
    const next = response.headers.get("location");
    const isRedirect = response.status >= 300 && response.status < 400;
    if (!isRedirect || next === null || count === REDIRECTS_MAX) {
      return response;
    }
    await response.body?.cancel();
    const target = new URL(next, url);
    if (target.origin !== new URL(url).origin) {
      // Its credentials are only for the named server.
      const { authorization: _, ...others } = headers as Record<string, string>;
      headers = others;
    }
    url = target.href;
  }
}

async function readText(response: Response): Promise<string> {
  const text = await responseText(response, DOCUMENT_BYTES_MAX);
  if (text !== undefined) return text;
  throw new CatalogDocumentError(
    `it is longer than ${DOCUMENT_BYTES_MAX} bytes`,
  );
}

function retryAfterMs({ headers }: Response): number {
  const seconds = headers.get("retry-after") ?? "";
  return /^\d{1,6}$/.test(seconds) ? Number(seconds) * 1000 : 0;
}

function problemOf(error: unknown): Trouble {
  return {
    reason: innermost(worldly("catalog", error, isOfTheWorld)),
    retryAfterMs: error instanceof PollError ? error.retryAfterMs : 0,
  };
}

/**
 * Whether the server, the connection, or the document has caused the error, and
 * not our code.
 */
function isOfTheWorld(error: unknown): error is Error {
  return error instanceof PollError || error instanceof CatalogDocumentError ||
    error instanceof TypeError || error instanceof NeighbourConfigError ||
    error instanceof TlsHandshakeError || error instanceof MessageError ||
    error instanceof LookupError || error instanceof NoAnswerYetError ||
    codeOf(error) !== "" ||
    (error instanceof Error && error.name in Deno.errors);
}

/** The innermost reason, which is the one that says something. */
function innermost(error: Error): string {
  let inner = error;
  while (
    inner.cause instanceof Error && !(inner instanceof TlsHandshakeError)
  ) inner = inner.cause;
  return inner.message;
}

/** A URL in a form for the log. */
function withoutSecrets(url: string): string {
  const parsed = new URL(url);
  parsed.username = parsed.password = parsed.search = "";
  return parsed.href;
}
