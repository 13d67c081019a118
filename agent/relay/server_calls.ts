/**
 * The connection to a server over which a relay makes its calls: made when it is
 * wanted, and made again when it is wanted after it was lost.
 *
 * While no server can be reached who asks is told so at once, with the reason,
 * and an attempt is made once a second at most.
 *
 * @module
 */

import { USED_MS } from "../../client/ads/ads_keeper.ts";
import type { CallRoad } from "../../client/call_road.ts";
import { driveHttp2 } from "../../net/http2/http2_driver.ts";
import { within } from "../../platform/time/deadline.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type { Transport } from "../../net/stream/transport.ts";
import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import { Connection } from "../../proto/streams/connection.ts";
import { refusePush } from "../../proto/streams/refuse_push.ts";
import type { Timer } from "../../proto/sync/clock.ts";

/** After a failed attempt its reason is what is said for so long. */
export const RETRY_MS = 1_000;

/** How long who asks waits for an attempt that is under way. */
export const WAIT_MS = 5_000;

/** PING a silent server after this long; the connection is lost after both. */
const KEEPALIVE = { intervalMs: 10_000, timeoutMs: 10_000 };

/** See the module description. */
export class ServerCalls {
  readonly #road: CallRoad;
  readonly #closed = new AbortController();
  #connection: Connection | undefined;
  #connecting: Promise<Connection> | undefined;
  #useTimer: Timer | undefined;
  #failure: { readonly reason: string; readonly atMs: number } | undefined;

  constructor(road: CallRoad) {
    this.#road = road;
  }

  /** `:authority` of calls. */
  get authority(): string {
    return this.#road.authority;
  }

  get scheme(): "http" | "https" {
    return this.#road.scheme;
  }

  /**
   * A connection that takes calls.
   *
   * @throws {GrpcError} UNAVAILABLE, with the reason; or rejects with it.
   */
  connection(): Connection | Promise<Connection> {
    if (this.#connection?.isUsable) return this.#connection;
    const nowMs = systemTimers.now();
    if (this.#failure !== undefined && this.#connecting === undefined) {
      const { reason, atMs } = this.#failure;
      if (nowMs - atMs < RETRY_MS) throw unavailable(reason);
    }
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
    });
    // Who asks is told that it takes long; the attempt goes on.
    return within({
      timers: systemTimers,
      timeoutMs: WAIT_MS,
      late: () => unavailable(`no answer within ${WAIT_MS / 1_000} s yet`),
    }, this.#connecting);
  }

  /** The next call goes to another server; what runs on this one goes on. */
  leave(connection: Connection): void {
    this.#forget(connection);
    connection.shutdown("calls go to another server");
  }

  close(reason: string): void {
    this.#closed.abort(new Error(reason));
    this.#useTimer?.cancel();
    this.#connection?.shutdown(reason);
  }

  async #connect(): Promise<Connection> {
    try {
      const connection = await this.#road.connect(
        (transport) => this.#drive(transport),
        this.#closed.signal,
      );
      this.#failure = undefined;
      this.#connection = connection;
      this.#use(connection);
      return connection;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#failure = { reason, atMs: systemTimers.now() };
      throw unavailable(reason);
    }
  }

  #drive(transport: Transport): Connection {
    const connection: Connection = new Connection({
      role: "client",
      clock: systemTimers,
      keepalive: KEEPALIVE,
      events: {
        onStream: refusePush,
        onClosed: () => this.#forget(connection),
      },
    });
    connection.start();
    driveHttp2(transport, connection, systemTimers);
    return connection;
  }

  /** A stream may last for days: the road hears of it all the time. */
  #use(connection: Connection): void {
    if (this.#road.used === undefined || !connection.isUsable) return;
    this.#useTimer?.cancel();
    this.#useTimer = systemTimers.after(USED_MS, () => this.#use(connection));
    this.#road.used(connection);
  }

  #forget(connection: Connection): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    this.#useTimer?.cancel();
  }
}

function unavailable(reason: string): GrpcError {
  return new GrpcError(
    StatusCode.UNAVAILABLE,
    `no discovery server can be reached: ${reason}`,
  );
}
