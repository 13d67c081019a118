/**
 * Answers plain HTTP/1.1 without authentication: health, metrics, admin.
 *
 * The platform's own server lets a client hold a connection without sending a
 * byte, which costs a descriptor, and a process without descriptors serves no
 * client. So each connection gets one short request, one answer and a deadline,
 * and their number is limited (`net/admission`): the oldest makes room for the
 * next. A client that follows events (`event_stream.ts`) stays until it leaves.
 *
 * A body is small or refused, and connections are not kept.
 *
 * @module
 */

import {
  type AdmittedConnection,
  ConnectionLimiter,
} from "../admission/connection_limiter.ts";
import {
  type ConnectionLimit,
  httpPlan,
  type LimitScope,
} from "../admission/connection_limits.ts";
import { descriptorLimit } from "../libc/descriptors.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { portOf } from "../../proto/peer/host_port.ts";
import {
  INTERNAL_ERROR,
  reportInternalError,
  unawaited,
} from "../../platform/errors/internal_errors.ts";
import { MessageError } from "../http1/refusal.ts";
import { Socket } from "../stream/socket.ts";
import type { AdminRole } from "../../proto/admin/api.ts";
import type { Stream } from "../stream/stream.ts";
import { isEventStream } from "./event_stream.ts";
import { answerPieces } from "./http_answer.ts";
import { plain } from "./http_endpoints.ts";
import { requestHead, requestOf } from "./http_request.ts";

/** From the first to the last byte, in both directions. */
export const HTTP_DEADLINE_MS = 10_000;

/**
 * How long a client that has connected is still answered as the port closes: its
 * request may be on its way, and a close would reset it.
 */
export const LAST_ANSWER_MS = 1_000;

/** A limit was reached: a connection was refused, or ended for another. */
export type LimitReached = (limit: ConnectionLimit, scope: LimitScope) => void;

/**
 * Limit on continuing answers at a time, for each role: screens of people. They
 * are counted separately, so that they crowd out no other request.
 */
export const WATCHERS_MAX = 32;

/** A watcher that reads nothing for this long is gone for good. */
export const WATCHER_STILL_MS = 60_000;

/** The peer, as far as its connection identifies it. */
export interface HttpPeer
  extends Pick<Stream, "remoteAddress" | "identity" | "peerCredentials"> {
  /** The additional time for the answer to an authenticated caller. */
  mayTake?(extraMs: number): void;
  /**
   * The caller is authenticated.
   *
   * @param isStill Whether it still has its rights; checked while an answer
   *   goes on.
   */
  known?(role: AdminRole, isStill: () => boolean): void;
}

/** Answers one request, whose signal says that the client is gone. */
export type HttpHandler = (
  request: Request,
  peer: HttpPeer,
) => Response | Promise<Response>;

export class HttpPort {
  /** Shared by all connections here, even behind a proxy. */
  readonly limiter: ConnectionLimiter;
  readonly #watchersMax: number;
  readonly #open = new Set<Exchange>();
  readonly #watchers = new Set<Exchange>();
  readonly #emptied = Promise.withResolvers<void>();
  #isClosing = false;

  /**
   * @param plan For tests, as `timers` are.
   */
  constructor(
    private readonly handler: HttpHandler,
    reached: LimitReached = () => {},
    plan = httpPlan(descriptorLimit()),
    private readonly timers: Timers = systemTimers,
  ) {
    this.#watchersMax = Math.min(WATCHERS_MAX, plan.all.unauthenticated);
    this.limiter = new ConnectionLimiter({
      plan,
      clock: timers,
      reached: (limit, scope) =>
        reached(ROOM.has(limit) ? "http_connections" : limit, scope),
    });
  }

  /** How many are connected and do not watch. */
  get connections(): number {
    return this.limiter.connections - this.#watchers.size;
  }

  /** How many follow events. */
  get watchers(): number {
    return this.#watchers.size;
  }

  /**
   * Serves one accepted connection until it ends.
   *
   * @param given As it was admitted before; absent: it is asked for here.
   */
  async accept(stream: Stream, given?: AdmittedConnection): Promise<void> {
    let close = () => stream.close();
    const admitted = given ??
      this.limiter.arrive(sourceOfStream(stream), () => close());
    if (admitted === undefined) return stream.close();
    const exchange: Exchange = new Exchange(stream, this.timers, {
      answer: (request, peer) => this.#answer(request, peer),
      // A caller that may only look makes room for one that may act.
      known: (role) => admitted.known({ mayGo: role !== "operate" }),
      watches: () => this.#watches(exchange, admitted),
      closed: () => this.#closed(exchange),
    });
    close = () => exchange.close();
    this.#open.add(exchange);
    if (this.#isClosing) exchange.endSoon();
    try {
      await exchange.run();
    } catch {
      // The client is gone, or was too slow; there is nowhere to report it.
    } finally {
      this.#watchers.delete(exchange);
      exchange.close();
      admitted.leave();
    }
  }

  /** The same, without waiting for the result. */
  take(stream: Stream, given?: AdmittedConnection): void {
    unawaited("http", this.accept(stream, given), () => stream.close());
  }

  /**
   * Ends who follows events; what was asked is still answered, for a moment.
   * Settles when nobody is connected.
   */
  close(): Promise<void> {
    this.#isClosing = true;
    for (const one of [...this.#open]) one.endSoon();
    if (this.#open.size === 0) this.#emptied.resolve();
    return this.#emptied.promise;
  }

  #closed(exchange: Exchange): void {
    this.#open.delete(exchange);
    if (this.#isClosing && this.#open.size === 0) this.#emptied.resolve();
  }

  async #answer(request: Request, peer: HttpPeer): Promise<Response> {
    try {
      return await this.handler(request, peer);
    } catch (error) {
      reportInternalError("http", error);
      return plain(500, `${INTERNAL_ERROR}\n`);
    }
  }

  #watches(exchange: Exchange, admitted: AdmittedConnection): boolean {
    if (this.#isClosing) return false;
    const same = [...this.#watchers]
      .filter(({ role }) => role === exchange.role);
    if (same.length >= this.#watchersMax) return false;
    admitted.known();
    this.#watchers.add(exchange);
    return true;
  }
}

/** Limits on how many there are. */
const ROOM: ReadonlySet<ConnectionLimit> = new Set([
  "connections",
  "unauthenticated_connections",
]);

/** On a unix socket each user counts as a source. */
function sourceOfStream(stream: Stream): string {
  const { remoteAddress } = stream;
  if (portOf(remoteAddress) >= 0) return remoteAddress;
  return `uid ${stream.peerCredentials()?.uid}`;
}

/** What an exchange asks of its port. */
interface ExchangeEvents {
  known(role: AdminRole): void;
  answer(request: Request, peer: HttpPeer): Promise<Response>;
  /** It is about to follow events. @returns Whether there is room. */
  watches(): boolean;
  /** Its connection is, even where an answer is still being made. */
  closed(): void;
}

/** One connection: a request, and its answer. */
class Exchange {
  readonly #socket: Socket;
  readonly #gone = new AbortController();
  #deadline: Timer | undefined;
  #isWatching = false;
  #isLast = false;
  /** For authenticated callers. */
  role: AdminRole | undefined;
  #isStill = () => true;

  constructor(
    stream: Stream,
    private readonly timers: Timers,
    private readonly events: ExchangeEvents,
  ) {
    this.#socket = new Socket(stream);
    this.#endWithin(HTTP_DEADLINE_MS);
  }

  close(): void {
    this.#deadline?.cancel();
    this.#socket.close();
    this.#gone.abort();
    this.events.closed();
  }

  /** The port closes. */
  endSoon(): void {
    if (this.#isWatching) return this.close();
    this.#endWithin(LAST_ANSWER_MS);
    this.#isLast = true;
  }

  async run(): Promise<void> {
    const socket = this.#socket;
    const read = await requestHead(socket);
    if (read === undefined) return;
    const head = read instanceof MessageError ? undefined : read;
    const request = read instanceof MessageError
      ? read
      : await requestOf(socket, read, this.#gone.signal);
    const over = this.#untilOver();
    // It is awaited below, where nothing else fails before.
    over.catch(() => {});
    const response = request instanceof MessageError
      ? plain(request.status, `${request.message}\n`)
      : this.#checked(await this.events.answer(request, this.#peer));
    const accepted = head?.fields.list("accept-encoding") ?? [];
    const pieces = answerPieces(response, {
      hasBody: head?.method !== "HEAD",
      canChunk: head?.version === "1.1",
      canGzip: accepted.some((one) =>
        /^gzip(?:;q=(?!0(?:\.0*)?$)|$)/.test(one)
      ),
    });
    for await (const bytes of pieces) {
      if (this.#isWatching && !this.#isStill()) return;
      await socket.writeAll(bytes);
      if (this.#isWatching) this.#endWithin(WATCHER_STILL_MS);
    }
    await socket.closeWrite();
    // Closing with bytes unread would destroy the answer under way.
    await over;
  }

  /** A client that has ended its side may still wait for its answer. */
  async #untilOver(): Promise<void> {
    const rest = new Uint8Array(1024);
    try {
      while (await this.#socket.read(rest) !== null);
    } catch (error) {
      this.#gone.abort();
      throw error;
    }
    // A client that follows events does not half-close and read on.
    if (this.#isWatching) this.close();
  }

  #checked(response: Response): Response {
    if (!isEventStream(response)) return response;
    if (this.events.watches()) {
      this.#isWatching = true;
      this.#endWithin(WATCHER_STILL_MS);
      return response;
    }
    response.body?.cancel();
    return new Response(
      JSON.stringify({
        message: "So many watch already with this role: close one of them",
      }) + "\n",
      { status: 503, headers: { "content-type": "application/json" } },
    );
  }

  get #peer(): HttpPeer {
    const { stream } = this.#socket;
    return {
      remoteAddress: stream.remoteAddress,
      identity: stream.identity,
      peerCredentials: () => stream.peerCredentials(),
      mayTake: (extraMs) => this.#endWithin(HTTP_DEADLINE_MS + extraMs),
      known: (role, isStill) => {
        this.role = role;
        this.events.known(role);
        this.#isStill = isStill;
      },
    };
  }

  #endWithin(ms: number): void {
    if (this.#isLast) return;
    this.#deadline?.cancel();
    this.#deadline = this.timers.after(ms, () => this.close());
  }
}
