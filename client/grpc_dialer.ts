/**
 * Dials through a server's gRPC frontend, all over one HTTP/2 connection.
 *
 * @module
 */

import { driveHttp2 } from "../host/http2_driver.ts";
import { randomDialId } from "../proto/link/dial_id.ts";
import { dialProxy } from "../proto/link/dial_proxy.ts";
import { Metadata } from "../proto/grpc/metadata.ts";
import { Connection } from "../proto/streams/connection.ts";
import { LARGE_FRAME_SIZE } from "../proto/streams/settings.ts";
import type { Timers } from "../proto/sync/clock.ts";
import type { Conduit } from "../proto/transfer/conduit.ts";
import { openFrontendTransport } from "./frontend_socket.ts";
import type { FrontendAddress } from "./road.ts";
import type { DialStarter, RoadDial } from "./road_dialer.ts";

/** Metadata that names the node whose agent is wanted; ours. */
export const NODE_FIELD = "tunnel-node";

/** PING a silent server after this long; the link is lost after the second. */
const KEEPALIVE = { intervalMs: 30_000, timeoutMs: 20_000 };

/** See the module description. */
export class GrpcDialer implements DialStarter {
  readonly #address: FrontendAddress;
  readonly #timers: Timers;
  #connection: Promise<Connection> | undefined;

  constructor(address: FrontendAddress, timers: Timers) {
    this.#address = address;
    this.#timers = timers;
  }

  async start(dial: RoadDial, signal: AbortSignal): Promise<Conduit> {
    const connection = await this.#usableConnection();
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<Conduit>();
    const { target, node, earlyData } = dial;
    const pending = dialProxy(connection, target, {
      onConnected: resolve,
      onFailed: reject,
    }, {
      authority: "localhost",
      scheme: this.#address.kind === "tcp" ? "https" : "http",
      timers: this.#timers,
      dialId: randomDialId((octets) => crypto.getRandomValues(octets)),
      ...(node === undefined
        ? {}
        : { metadata: new Metadata({ [NODE_FIELD]: node }) }),
      ...(earlyData === undefined ? {} : { earlyData }),
    });
    signal.addEventListener("abort", () => pending.cancel());
    return await promise;
  }

  close(): void {
    this.#connection?.then(
      (connection) => connection.shutdown("the client is done"),
      () => {}, // Whoever dialed has been told.
    );
  }

  /** The shared connection, or a new one when that takes no more calls. */
  async #usableConnection(): Promise<Connection> {
    const shared = await this.#connection?.catch(() => undefined);
    if (shared?.isUsable) return shared;
    const connecting = this.#connect();
    this.#connection = connecting;
    return await connecting;
  }

  async #connect(): Promise<Connection> {
    const transport = await openFrontendTransport(this.#address, {
      timers: this.#timers,
    });
    const connection = new Connection({
      role: "client",
      clock: this.#timers,
      keepalive: KEEPALIVE,
      settings: { maxFrameSize: LARGE_FRAME_SIZE },
      events: {
        onStream: () => {
          throw new TypeError("Cannot accept a stream: push is disabled");
        },
        onClosed: () => {}, // Its conduits have heard; the next dial reconnects.
      },
    });
    connection.start();
    driveHttp2(transport, connection, this.#timers);
    return connection;
  }
}
