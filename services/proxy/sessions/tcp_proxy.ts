/**
 * Serves a port over TCP: each client is joined with a backend.
 *
 * Connecting is no business of the accept loop, so a dead backend holds up only
 * the client that was to go there, and that one for a try: then the next backend
 * is dialed, each once at most. What follows is the tunnel's own transfer loop,
 * with its half-closes and resets.
 *
 * @module
 */

import { unawaited } from "../../../platform/errors/internal_errors.ts";
import {
  type ListenAddress,
  listenTcp,
} from "../../../net/listen/listeners.ts";
import type { Stream } from "../../../net/stream/stream.ts";
import type { Timer } from "../../../proto/sync/clock.ts";
import type { Backend } from "../balancer/backend.ts";
import {
  type ConnectionDefaults,
  type Leaving,
  type PortCounts,
  type PortListener,
  type PortProxy,
  type ProxiedPort,
  type ProxyContext,
} from "../listeners/proxied_port.ts";
import { IdleList } from "./session_lists.ts";
import { TcpConnection } from "./tcp_connection.ts";

/**
 * Connections of one port at once. A client that may connect can do so without end,
 * and each costs two descriptors; with more a process has other troubles.
 */
export const TCP_CONNECTIONS_MAX = 65_536;

/**
 * Silent connections are looked for so many times within the timeout, which
 * bounds how late the end comes, …
 */
export const SWEEPS_PER_IDLE = 10;

/** … and never more rarely, because a service may come to want another time. */
const SWEEP_MS_MAX = 30_000;

export class TcpPortProxy implements PortProxy {
  readonly #connections = new IdleList<TcpConnection>();
  readonly #drained = Promise.withResolvers<void>();
  /** Backends whose connections are drained. */
  readonly #leaving = new Map<Backend, Timer>();
  /** Connections of which one side is over. */
  #halfClosed = 0;
  #sweep: { readonly timer: Timer; readonly dueMs: number } | undefined;
  /** Listeners that are closed, and may still return queued clients. */
  #closing = 0;
  /** `over`: the time of every connection is over. */
  #end: "none" | "draining" | "over" = "none";

  constructor(
    readonly port: ProxiedPort,
    readonly context: ProxyContext,
    private readonly connectionsMax: number = TCP_CONNECTIONS_MAX,
  ) {}

  open(at: ListenAddress): PortListener {
    const listener = listenTcp(at, {
      isPatient: true,
      onConnection: (stream) => this.#accept(stream),
      onProblem: (line) =>
        this.context.log.warn(`${this.port.key}: ${line}`, {
          code: "TUN513",
        }),
    });
    let isClosed = false;
    const close = () => {
      if (isClosed) return;
      isClosed = true;
      this.#closing++;
      listener.close();
    };
    const finished = listener.finished.then(() => {
      if (isClosed) this.#closing--;
      this.#settle();
    });
    return { ...listener, close, finished };
  }

  updated(): void {
    this.#armSweep();
  }

  get load(): number {
    return this.#connections.size;
  }

  /** What runs, and what may come yet. */
  get #unsettled(): number {
    return this.#connections.size + this.#closing;
  }

  /** Connections stay by default, because their backend may finish them. */
  left(backends: readonly Backend[], why: Leaving): void {
    if (why === "service removed") return;
    const setting = why === "down" ? "onEndpointDown" : "onEndpointRemoved";
    const end = this.#setting(setting);
    if (end === "stay") return;
    for (const backend of backends) {
      const words = `${backend.key} is ${why === "down" ? "down" : "gone"}`;
      if (end === "reset") this.#endAllOf(backend, words);
      else this.#drainAllOf(backend, words);
    }
  }

  #drainAllOf(backend: Backend, words: string): void {
    if (this.#leaving.has(backend)) return;
    const drainMs = this.#setting("endpointDrainMs");
    const timer = this.context.timers.after(drainMs, () => {
      this.#leaving.delete(backend);
      if (!this.#isBack(backend)) this.#endAllOf(backend, words);
    });
    this.#leaving.set(backend, timer);
  }

  /** The catalog may have renamed it meanwhile. */
  #isBack({ key }: Backend): boolean {
    return [...this.port.balancer.backends].some((one) =>
      one.key === key && one.isUsable && one.health !== "ill"
    );
  }

  #endAllOf(backend: Backend, words: string): void {
    for (const one of [...this.#connections]) {
      if (one.backend !== backend || !one.stop(words)) continue;
      this.port.counts.endedByEndpoint++;
      this.port.lastError = words;
    }
  }

  /** The service's setting, or the proxy's default. */
  #setting<Setting extends Exclude<keyof ConnectionDefaults, "ejection">>(
    setting: Setting,
  ): ConnectionDefaults[Setting] {
    const own = this.port.policy[setting] as
      | ConnectionDefaults[Setting]
      | undefined;
    return own ?? this.context.defaults[setting];
  }

  /**
   * All connections are checked together now and then by their byte counts, so
   * that a byte costs nothing more.
   */
  #armSweep(): void {
    const idleMs = this.#setting("idleTimeoutMs");
    const delayMs = Math.min(
      idleMs === 0 || this.#connections.size === 0 ? Infinity : sweepMs(idleMs),
      this.#halfClosed === 0
        ? Infinity
        : sweepMs(this.#setting("halfClosedTimeoutMs")),
    );
    const { timers } = this.context;
    const dueMs = timers.now() + delayMs;
    if (dueMs >= (this.#sweep?.dueMs ?? Infinity)) return;
    this.#sweep?.timer.cancel();
    const timer = timers.after(delayMs, () => {
      this.#sweep = undefined;
      this.#endSilent();
      this.#armSweep();
    });
    this.#sweep = { timer, dueMs };
  }

  /**
   * A half-closed connection is valid, and TCP cannot tell when its open side
   * neither sends nor reads: the peer answers every keepalive. A connection
   * that still sends something, however little, goes on.
   */
  #endSilent(): void {
    const nowMs = this.context.timers.now();
    const idleMs = this.#setting("idleTimeoutMs") || Infinity;
    const halfMs = this.#setting("halfClosedTimeoutMs") || Infinity;
    const end = (one: TcpConnection, why: string, count: keyof PortCounts) => {
      if (one.stop(why)) this.port.counts[count]++;
    };
    // One that is given up may be over at once, and others by it.
    for (const one of [...this.#connections]) {
      if (one.hasMoved()) this.#connections.touch(one, nowMs);
      const silentMs = nowMs - one.lastHeardMs;
      if (one.isHalfClosed && silentMs >= halfMs) {
        const why =
          "one side had ended and nothing was heard of the other for ";
        this.port.lastError = why + durationText(halfMs);
        end(one, this.port.lastError, "endedHalfClosed");
      } else if (silentMs >= idleMs) {
        end(one, `nothing was said for ${durationText(idleMs)}`, "endedIdle");
      }
    }
  }

  drain(drainMs: number): Promise<void> {
    this.#end = "draining";
    this.#settle();
    const giveUp = () => {
      this.#end = "over";
      for (const one of [...this.#connections]) {
        one.stop("the service was removed");
      }
    };
    if (drainMs === 0) giveUp();
    else if (this.#unsettled > 0) {
      const deadline = this.context.timers.after(drainMs, giveUp);
      const drained = this.#drained.promise.then(() => deadline.cancel());
      unawaited("proxy", drained);
    }
    return this.#drained.promise;
  }

  #accept(stream: Stream): void {
    const { counts } = this.port;
    counts.accepted++;
    if (this.#end === "over") return stream.reset();
    if (this.#connections.size >= this.connectionsMax) {
      counts.refused++;
      this.port.lastError = `more than ${this.connectionsMax} connections`;
      return stream.reset();
    }
    const userTimeoutMs = this.#setting("userTimeoutMs");
    const connection = new TcpConnection(stream, this, userTimeoutMs);
    this.#connections.add(connection, this.context.timers.now());
    this.context.changed?.();
    this.#armSweep();
    unawaited("proxy", connection.run());
  }

  /** One of its sides is over. */
  onHalfClosed(connection: TcpConnection): void {
    this.#connections.touch(connection, this.context.timers.now());
    this.#halfClosed++;
    this.#armSweep();
  }

  /** Called once for every connection. */
  onOver(connection: TcpConnection): void {
    this.#connections.delete(connection);
    if (connection.isHalfClosed) this.#halfClosed--;
    this.#settle();
    this.context.changed?.();
  }

  #settle(): void {
    if (this.#end !== "none" && this.#unsettled === 0) {
      this.#sweep?.timer.cancel();
      for (const timer of this.#leaving.values()) timer.cancel();
      this.#leaving.clear();
      this.#drained.resolve();
    }
  }
}

function sweepMs(idleMs: number): number {
  return Math.min(idleMs / SWEEPS_PER_IDLE || Infinity, SWEEP_MS_MAX);
}

function durationText(ms: number): string {
  if (ms % 60_000 === 0) return `${ms / 60_000} minutes`;
  return ms % 1_000 === 0 ? `${ms / 1_000} s` : `${ms} ms`;
}
