/**
 * The port where callers ask for conduits: HTTP/2 with gRPC and HTTP/1.1
 * CONNECT on one listener, told apart by the first octets.
 *
 * @module
 */

import type { GrpcRouter } from "../../proto/grpc/server.ts";
import { Connection } from "../../proto/streams/connection.ts";
import type { ReceiveBudget } from "../../proto/streams/receive_budget.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { driveHttp2 } from "../../host/http2_driver.ts";
import type { OctetSocket } from "../../host/sockets/octet_socket.ts";
import { SocketConduit } from "../../host/sockets/socket_conduit.ts";
import { socketTransport } from "../../host/sockets/socket_transport.ts";
import type { FrontendMode } from "../options.ts";
import { refusalOctets } from "./connect_response.ts";
import {
  ConnectClient,
  type ConnectClientOptions,
  HEAD_TIMEOUT_MS,
} from "./connect_client.ts";
import { type SniffedProtocol, sniffProtocol } from "./sniff.ts";

/** What `FrontendPort` needs from outside. */
export interface FrontendPortOptions {
  readonly mode: FrontendMode;
  readonly timers: Timers;
  /** PING a silent HTTP/2 caller after this long. */
  readonly keepaliveMs: number;
  /** Shared with every connection of the process. */
  readonly receiveBudget: ReceiveBudget;
  readonly router: GrpcRouter;
  readonly connect: ConnectClientOptions;
  /** A client was turned away before it could ask for anything. */
  turnedAway(remoteAddress: string, reason: string): void;
  /** +1 and −1 for every HTTP/1.1 and every HTTP/2 connection. */
  counted(protocol: "http1" | "http2", change: 1 | -1): void;
}

/** Longest wait for the answer to a PING, as grpc-go's default. */
const PING_TIMEOUT_MS = 20_000;

/** Octets for telling protocols apart; HTTP/2's preface has 24. */
const SNIFF_OCTETS = 512;

/** See the module description. */
export class FrontendPort {
  readonly #options: FrontendPortOptions;
  /** One for all clients: idle ones are many, and each should cost little. */
  readonly #connect: ConnectClientOptions;
  readonly #connections = new Set<Connection>();

  constructor(options: FrontendPortOptions) {
    this.#options = options;
    this.#connect = {
      ...options.connect,
      closed: () => options.counted("http1", -1),
    };
  }

  /** Serves one accepted connection until it ends. */
  async accept(socket: OctetSocket): Promise<void> {
    const early = new Uint8Array(SNIFF_OCTETS);
    const sniffed = await this.#sniff(socket, early);
    if (sniffed === undefined) return socket.close();
    const octets = early.subarray(0, sniffed.size);
    switch (this.#servable(sniffed.protocol)) {
      case "http2":
        return this.#serveHttp2(socket, octets);
      case "http1":
        return this.#serveHttp1(socket, octets);
    }
    const reason = WHY_NOT[sniffed.protocol];
    this.#options.turnedAway(socket.remoteAddress, reason);
    if (
      sniffed.protocol === "unknown" && this.#options.mode !== "http-connect"
    ) {
      // An invalid preface (RFC 9113 §3.4): the engine says what it saw.
      return this.#serveHttp2(socket, octets);
    }
    await this.#turnAway(socket, sniffed.protocol, reason);
  }

  /** No new calls on the HTTP/2 connections there are; what runs goes on. */
  shutdown(reason: string): void {
    for (const connection of this.#connections) connection.shutdown(reason);
  }

  /** @returns `undefined` when the client left, or said too little for too long. */
  async #sniff(
    socket: OctetSocket,
    into: Uint8Array,
  ): Promise<{ protocol: SniffedProtocol; size: number } | undefined> {
    let size = 0;
    const timer: Timer = this.#options.timers.after(
      HEAD_TIMEOUT_MS,
      () => socket.close(),
    );
    try {
      while (true) {
        const count = await socket.read(into.subarray(size));
        if (count === null) return undefined;
        size += count;
        const protocol = sniffProtocol(into.subarray(0, size));
        if (protocol !== undefined) return { protocol, size };
      }
    } catch {
      // The client is gone before it asked for anything: nothing to tell it.
      return undefined;
    } finally {
      timer.cancel();
    }
  }

  #servable(protocol: SniffedProtocol): "http1" | "http2" | undefined {
    const { mode } = this.#options;
    if (protocol === "http2" && mode !== "http-connect") return "http2";
    if (protocol === "http1" && mode !== "grpc") return "http1";
    return undefined;
  }

  #serveHttp1(socket: OctetSocket, early: Uint8Array): void {
    this.#options.counted("http1", 1);
    new ConnectClient(new SocketConduit(socket, { early }), this.#connect);
  }

  #serveHttp2(socket: OctetSocket, early: Uint8Array): void {
    const { router, timers, keepaliveMs, counted } = this.#options;
    const connection = new Connection({
      role: "server",
      clock: timers,
      keepalive: { intervalMs: keepaliveMs, timeoutMs: PING_TIMEOUT_MS },
      receiveBudget: this.#options.receiveBudget,
      events: {
        onStream: (stream) => router.accept(stream),
        onClosed: () => {
          this.#connections.delete(connection);
          counted("http2", -1);
        },
      },
    });
    this.#connections.add(connection);
    counted("http2", 1);
    connection.start();
    driveHttp2(socketTransport(socket, early), connection, timers);
  }

  async #turnAway(
    socket: OctetSocket,
    protocol: SniffedProtocol,
    reason: string,
  ): Promise<void> {
    try {
      // Plain words help whoever looks at the wire; TLS would not show them.
      if (protocol !== "tls") await socket.write(refusalOctets(400, reason));
      await socket.closeWrite();
    } catch {
      // The client is gone; there is nobody left to tell.
    }
    socket.close();
  }
}

const WHY_NOT: Readonly<Record<SniffedProtocol, string>> = {
  http1: "Cannot serve HTTP/1.1 here: this frontend has --mode=grpc; " +
    "use --mode=auto or http-connect for CONNECT",
  http2: "Cannot serve gRPC here: this frontend has --mode=http-connect; " +
    "use --mode=auto or grpc",
  tls: "Cannot serve TLS here: this frontend is plain (a unix socket); " +
    "connect without TLS",
  unknown: "Cannot serve this client: its first octets are neither HTTP/1.1 " +
    "nor HTTP/2",
};
