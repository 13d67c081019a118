/**
 * Dials by gRPC calls of a server, all over one HTTP/2 connection, and
 * over further ones when that has as many calls as the server allows.
 *
 * @module
 */

import { driveHttp2 } from "../net/http2/http2_driver.ts";
import type { Transport } from "../net/stream/transport.ts";
import { DialError } from "../proto/peer/dial_error.ts";
import { NODE_FIELD, ONE_AGENT_FIELD } from "../proto/link/dial_handler.ts";
import { randomDialId } from "../proto/link/dial_id.ts";
import { dialProxy } from "../proto/link/dial_proxy.ts";
import { Metadata } from "../proto/grpc/metadata.ts";
import { Connection } from "../proto/streams/connection.ts";
import { refusePush } from "../proto/streams/refuse_push.ts";
import { LARGE_FRAME_SIZE } from "../proto/streams/settings.ts";
import type { Timers } from "../proto/sync/clock.ts";
import type { Conduit } from "../proto/transfer/conduit.ts";
import type { CallRoad } from "./call_road.ts";
import type { DialStarter, RoadDial } from "./road_dialer.ts";

/** PING a silent server after this long; the link is lost after the second. */
const KEEPALIVE = { intervalMs: 30_000, timeoutMs: 20_000 };

/** How often one dial is made again, over another connection. */
const RETRIES_MAX = 3;

/** See the module description. */
export class GrpcDialer implements DialStarter {
  readonly #road: CallRoad;
  readonly #timers: Timers;
  /** With how many calls at once each takes; unlimited until the server says. */
  readonly #connections = new Map<Connection, number>();
  /** Whose servers have said something. */
  readonly #greeted = new WeakSet<Connection>();
  #connecting: Promise<void> | undefined;
  readonly #closed = new AbortController();

  constructor(road: CallRoad, timers: Timers) {
    this.#road = road;
    this.#timers = timers;
  }

  async start(dial: RoadDial, signal: AbortSignal): Promise<Conduit> {
    for (let retries = 0;;) {
      signal.throwIfAborted();
      if (this.#closed.signal.aborted) {
        throw new TypeError("Cannot dial: the dialer was closed before");
      }
      // Found and used in one turn, so that no two dials take the same place.
      const connection = this.#withRoom();
      if (connection !== undefined) {
        this.#road.used?.(connection);
        try {
          return await this.#dialOn(connection, dial, signal);
        } catch (error) {
          const isRefusal = this.#isStranger(connection);
          if (
            isRefusal || retries++ >= RETRIES_MAX || !canGoAgain(error, dial)
          ) {
            throw error;
          }
        }
        this.#leave(connection);
        continue;
      }
      await (this.#connecting ??= this.#connect().finally(() => {
        this.#connecting = undefined;
      }));
    }
  }

  close(): void {
    this.#closed.abort(new DialError("cancelled", "the dialer was closed"));
    for (const one of this.#connections.keys()) {
      one.shutdown("the client is done");
    }
  }

  /**
   * A server that has shaken hands and ended the connection before it said a
   * word of HTTP/2 refuses our certificate (TLS 1.3); it will do so again.
   */
  #isStranger(connection: Connection): boolean {
    return this.#road.scheme === "https" && !this.#greeted.has(connection);
  }

  /** Its server takes no more calls: what runs there goes on. */
  #leave(connection: Connection): void {
    this.#connections.delete(connection);
    connection.shutdown("the server takes no more calls");
  }

  /** A connection that takes one more call, if there is one. */
  #withRoom(): Connection | undefined {
    for (const [one, callsMax] of this.#connections) {
      if (one.isUsable && one.openStreams < callsMax) return one;
    }
    return undefined;
  }

  #dialOn(
    connection: Connection,
    { target, node, oneAgent, earlyData }: RoadDial,
    signal: AbortSignal,
  ): Promise<Conduit> {
    const { promise, resolve, reject } = Promise.withResolvers<Conduit>();
    const pending = dialProxy(connection, target, {
      onConnected: resolve,
      onFailed: reject,
    }, {
      authority: this.#road.authority,
      scheme: this.#road.scheme,
      timers: this.#timers,
      dialId: randomDialId((bytes) => crypto.getRandomValues(bytes)),
      ...(node !== undefined
        ? { metadata: new Metadata({ [NODE_FIELD]: node }) }
        : oneAgent === true
        ? { metadata: new Metadata({ [ONE_AGENT_FIELD]: "true" }) }
        : {}),
      ...(earlyData === undefined ? {} : { earlyData }),
    });
    signal.addEventListener("abort", () => pending.cancel());
    return promise;
  }

  #connect(): Promise<void> {
    return this.#road.connect(
      (transport) => this.#drive(transport),
      this.#closed.signal,
    );
  }

  #drive(transport: Transport): void {
    const connection = new Connection({
      role: "client",
      clock: this.#timers,
      keepalive: KEEPALIVE,
      settings: { maxFrameSize: LARGE_FRAME_SIZE },
      events: {
        onStream: refusePush,
        onPeerSettings: () => {
          const { maxConcurrentStreams } = connection.peerSettings;
          this.#connections.set(connection, maxConcurrentStreams);
          this.#greeted.add(connection);
        },
        // Its conduits have heard; the next dial connects anew.
        onClosed: () => this.#connections.delete(connection),
      },
    });
    this.#connections.set(connection, Infinity);
    connection.start();
    driveHttp2(transport, connection, this.#timers);
  }
}

/**
 * The connection went, or its server is going, before there was an answer. What
 * the client had to say may have been heard then, and must not be said twice; a
 * connection to a target on which nothing was said does no harm.
 */
function canGoAgain(error: unknown, { earlyData }: RoadDial): boolean {
  if (!(error instanceof DialError) || error.loss === undefined) return false;
  const saidNothing = earlyData === undefined || earlyData.length === 0;
  return error.loss === "unheard" || saidNothing;
}
