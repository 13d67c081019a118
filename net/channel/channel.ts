/**
 * A channel for calls of a server, or of one of several: connected at first
 * use, connected again at the first use after a loss, and with a further
 * connection when a server accepts no more calls on the present one.
 *
 * gRPC's channel is the model. A silent server is sent PINGs, so a connection
 * that is handed out is as good as its keepalive; a client that sends too many
 * is refused and sends fewer (gRFC A8). While there is no server callers get
 * the error at once: the next attempt is made a moment later, for the next
 * caller.
 *
 * The upstream makes connections; the caller decides about calls and
 * repetitions.
 *
 * @module
 */

import { ErrorCode } from "../../proto/frames/wire_error.ts";
import type { AbuseLimits } from "../../proto/streams/abuse_limits.ts";
import type { Connection } from "../../proto/streams/connection.ts";
import type { KeepaliveOptions } from "../../proto/streams/keepalive.ts";
import type { ReceiveBudget } from "../../proto/streams/receive_budget.ts";
import type { LocalSettings } from "../../proto/streams/settings.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { openClientConnection } from "../http2/client_connection.ts";
import type { Stream } from "../stream/stream.ts";
import type { RequestTarget, Upstream } from "./upstream.ts";

/** How often an upstream is notified that long calls are still there. */
export const USED_MS = 30_000;

/** Servers that get too many PINGs refuse them; no longer wait is needed. */
export const KEEPALIVE_MS_MAX = 600_000;

/**
 * One answer on whether a server is there counts for questions that follow
 * within this time.
 */
const SUSPECTED_MS = 1_000;

/** The parts of a channel. */
export interface ChannelOptions {
  readonly upstream: Upstream;
  readonly timers: Timers;
  /**
   * A PING is sent after this time without a frame; the server is gone after
   * both.
   */
  readonly keepalive: KeepaliveOptions;
  readonly settings?: Partial<LocalSettings>;
  /** What servers may do often, beside the defaults. */
  readonly limits?: Partial<AbuseLimits>;
  /** Shared with other connections of the process; each has its own without. */
  readonly receiveBudget?: ReceiveBudget;
  /** After a failed attempt its error is thrown for this long; 0 by default. */
  readonly failedMs?: number;
}

/** One connection of a channel. */
export interface ChannelConnection extends RequestTarget {
  readonly http2: Connection;
  /** The server's address. */
  readonly server: string;
  /**
   * The server has sent a frame of HTTP/2. One that has done the handshake and
   * ended the connection before that refuses our certificate (TLS 1.3), and
   * will do so again.
   */
  readonly hasAnswered: boolean;
  /** What broke it, if anything has. */
  readonly failure: Error | undefined;
  /**
   * The connection is unusable: the next call uses another one, to the next
   * server. Running calls go on.
   */
  leave(reason: string): void;
}

export class Channel {
  readonly #closing = new AbortController();
  /** All that are open: those in use, and those that were left. */
  readonly #open = new Set<ServerConnection>();
  #connecting: Promise<ServerConnection> | undefined;
  #failure: { readonly error: unknown; readonly atMs: number } | undefined;
  #keepaliveMs: number;

  constructor(private readonly options: ChannelOptions) {
    this.#keepaliveMs = options.keepalive.intervalMs;
  }

  /** A connection that takes one more call, which is made in this turn. */
  take(): ChannelConnection | undefined {
    for (const one of this.#open) {
      if (!one.hasRoom) continue;
      one.use();
      return one;
    }
    return undefined;
  }

  /**
   * Connects, unless that is under way.
   *
   * @throws What the upstream throws, or the error of `close`.
   */
  async connect(): Promise<void> {
    await this.#connected();
  }

  /**
   * A connection for one call: an existing one, or a new one.
   *
   * @throws As {@linkcode connect}.
   */
  async connection(): Promise<ChannelConnection> {
    const ready = this.take();
    if (ready !== undefined) return ready;
    const made = await this.#connected();
    // Other waiting callers may have filled it, or it is gone already: the call
    // finds out.
    return this.take() ?? made;
  }

  /**
   * Asks whether the server is there at all, and ends connections on which it
   * has sent nothing within `waitMs`, if that is finite; calls on them are lost
   * then.
   *
   * @returns Whether it has answered since.
   */
  suspect(waitMs: number, reason: string): () => boolean {
    const asked = new Set(this.#open);
    const heard = [...asked].map((one) => one.suspect(waitMs, reason));
    // One may have been made since.
    return () =>
      heard.some((isHeard) => isHeard()) ||
      [...this.#open.difference(asked)].some(({ hasAnswered }) => hasAnswered);
  }

  /** No server has sent a frame on any connection. */
  get isUnheard(): boolean {
    return ![...this.#open].some(({ hasAnswered }) => hasAnswered);
  }

  /**
   * No new calls; those that run go on.
   *
   * @param error What callers get that want a connection, or wait for one.
   */
  close(reason: string, error: Error = new Error(reason)): void {
    this.#closing.abort(error);
    for (const one of this.#open) one.leave(reason);
  }

  /** Ends all calls and connections. @param error As {@linkcode close}. */
  abort(reason: string, error: Error = new Error(reason)): void {
    this.#closing.abort(error);
    for (const { http2 } of this.#open) http2.abort(ErrorCode.NO_ERROR, reason);
  }

  #connected(): Promise<ServerConnection> {
    this.#connecting ??= this.#attempt().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  async #attempt(): Promise<ServerConnection> {
    const { upstream, timers, failedMs = 0 } = this.options;
    const { signal } = this.#closing;
    signal.throwIfAborted();
    if (this.#failure !== undefined) {
      const { error, atMs } = this.#failure;
      if (timers.now() - atMs < failedMs) throw error;
    }
    try {
      const connection = await upstream.connect(
        (stream, target) => this.#drive(stream, target),
        signal,
      );
      this.#failure = undefined;
      return connection;
    } catch (error) {
      this.#failure = { error, atMs: timers.now() };
      throw error;
    }
  }

  #drive(
    stream: Stream,
    target: RequestTarget = this.options.upstream,
  ): ServerConnection {
    const { timers, settings, limits, receiveBudget, keepalive } = this.options;
    const connection: ServerConnection = new ServerConnection(
      openClientConnection(stream, {
        timers,
        keepalive: { ...keepalive, intervalMs: this.#keepaliveMs },
        settings,
        limits,
        receiveBudget,
        events: {
          onPeerSettings: () => connection.answered(),
          onGoaway: ({ code }) => {
            if (code === ErrorCode.ENHANCE_YOUR_CALM) this.#askLess();
          },
          onClosed: ({ error }) => {
            connection.closed(error);
            this.#open.delete(connection);
          },
        },
      }),
      stream.remoteAddress,
      target,
      this.options,
    );
    this.#open.add(connection);
    if (this.#closing.signal.aborted) {
      connection.http2.abort(ErrorCode.NO_ERROR, "the channel is closed");
    }
    return connection;
  }

  #askLess(): void {
    this.#keepaliveMs = Math.min(2 * this.#keepaliveMs, KEEPALIVE_MS_MAX);
  }
}

class ServerConnection implements ChannelConnection {
  readonly authority: string;
  readonly scheme: "http" | "https";
  readonly #timers: Timers;
  readonly #upstream: Upstream;
  #hasAnswered = false;
  #failure: Error | undefined;
  #isLeft = false;
  /** Set while calls may last. */
  #timer: Timer | undefined;
  #suspected: { readonly atMs: number; isHeard(): boolean } | undefined;
  #suspicion: Timer | undefined;

  constructor(
    readonly http2: Connection,
    readonly server: string,
    { authority, scheme }: RequestTarget,
    { timers, upstream }: ChannelOptions,
  ) {
    this.authority = authority;
    this.scheme = scheme;
    this.#timers = timers;
    this.#upstream = upstream;
  }

  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  get failure(): Error | undefined {
    return this.#failure;
  }

  get hasRoom(): boolean {
    const { isUsable, openStreams, peerSettings } = this.http2;
    // Before the server's SETTINGS arrive there is no limit.
    const callsMax = this.#hasAnswered
      ? peerSettings.maxConcurrentStreams
      : Infinity;
    return !this.#isLeft && isUsable && openStreams < callsMax;
  }

  answered(): void {
    if (this.#hasAnswered) return;
    this.#hasAnswered = true;
    if (this.http2.openStreams > 0) this.use();
  }

  /** A call is made. */
  use(): void {
    const upstream = this.#upstream;
    if (upstream.used === undefined) return;
    if (!this.#hasAnswered || !this.http2.isUsable) return;
    upstream.used(this.http2);
    this.#timer ??= this.#timers.after(USED_MS, () => {
      this.#timer = undefined;
      if (this.http2.openStreams > 0) this.use();
    });
  }

  leave(reason: string): void {
    this.#isLeft = true;
    this.http2.shutdown(reason);
  }

  suspect(waitMs: number, reason: string): () => boolean {
    const { http2 } = this;
    const nowMs = this.#timers.now();
    const last = this.#suspected;
    // Many calls may wait: a PING each would be an attack.
    if (last !== undefined && nowMs - last.atMs < SUSPECTED_MS) {
      return last.isHeard;
    }
    const { lastHeardMs } = http2;
    const isHeard = () => http2.answeredMs >= nowMs;
    this.#suspected = { atMs: nowMs, isHeard };
    http2.checkLiveness();
    if (waitMs === Infinity) return isHeard;
    this.#suspicion ??= this.#timers.after(waitMs, () => {
      this.#suspicion = undefined;
      if (http2.lastHeardMs > lastHeardMs) return;
      http2.abort(ErrorCode.NO_ERROR, reason);
    });
    return isHeard;
  }

  closed(failure: Error | undefined): void {
    this.#failure = failure;
    this.#timer?.cancel();
    this.#suspicion?.cancel();
  }
}
