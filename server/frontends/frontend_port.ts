/**
 * The port where callers ask for conduits: HTTP/2 with gRPC and HTTP/1.1
 * CONNECT on one listener, recognized by the first bytes.
 *
 * @module
 */

import { openServerConnection } from "../../net/http2/server_connection.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import { WireError } from "../../proto/frames/wire_error.ts";
import type { GrpcRouter } from "../../proto/grpc/server.ts";
import type { Connection } from "../../proto/streams/connection.ts";
import type { ReceiveBudget } from "../../proto/streams/receive_budget.ts";
import {
  type SharedLimits,
  UNSHARED,
} from "../../proto/streams/abuse_limits.ts";
import type { ConnectionEnd } from "../../proto/streams/connection_events.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import { conduitOf } from "../../net/stream/stream_conduit.ts";
import type { Stream } from "../../net/stream/stream.ts";
import type { FrontendMode } from "../options.ts";
import type { Caller } from "../policy/caller.ts";
import { refusalBytes, turnAway } from "../../net/http1/refusal.ts";
import {
  ConnectSession,
  type ConnectSessionOptions,
} from "../../net/http1/connect_session.ts";
import { FirstLook, type SniffedProtocol } from "./first_look.ts";

/** What `FrontendPort` needs from outside. */
export interface FrontendPortOptions {
  readonly mode: FrontendMode;
  readonly timers: Timers;
  /** PING a silent HTTP/2 caller after this long. */
  readonly keepaliveMs: number;
  /** Shared with every connection of the process. */
  readonly receiveBudget: ReceiveBudget;
  /** Serves the calls of one connection, which are all of one caller. */
  routerFor(caller: Caller): GrpcRouter;
  readonly connect: ConnectSessionOptions<Caller>;
  /** A client was turned away before it could ask for anything. */
  turnedAway(remoteAddress: string, reason: string): void;
  /** An HTTP/2 connection is over. */
  ended?(end: ConnectionEnd): void;
  /** +1 and −1 for every HTTP/1.1 connection. */
  counted?(change: 1 | -1): void;
}

/** Longest wait for the answer to a PING, as grpc-go's default. */
const PING_TIMEOUT_MS = 20_000;

/** Serves accepted connections of callers. */
export class FrontendPort {
  /** One for all clients: idle ones are many, and each should cost little. */
  readonly #connect: ConnectSessionOptions<Caller>;
  readonly #connections = new Set<Connection>();
  /** Why callers that still come must go elsewhere. */
  #ending: string | undefined;

  constructor(private readonly options: FrontendPortOptions) {
    this.#connect = {
      ...options.connect,
      closed: () => options.counted?.(-1),
    };
  }

  /**
   * Serves one accepted connection until it ends.
   *
   * @param shared What it shares with others of its source.
   */
  accept(stream: Stream, shared: SharedLimits = UNSHARED): void {
    new FirstLook(
      stream,
      this.options.timers,
      (protocol, stream) => this.#serve(stream, protocol, shared),
    ).onReady();
  }

  /** Those of HTTP/2 that are open. */
  get connections(): number {
    return this.#connections.size;
  }

  /** No new calls on the HTTP/2 connections there are; what runs goes on. */
  shutdown(reason: string): void {
    for (const connection of this.#connections) connection.shutdown(reason);
  }

  /** The same, also on connections that come from the kernel's queue yet. */
  finish(reason: string): void {
    this.#ending = reason;
    this.shutdown(reason);
  }

  #serve(
    stream: Stream,
    protocol: SniffedProtocol,
    shared: SharedLimits,
  ): void {
    switch (this.#servable(protocol)) {
      case "http2":
        return this.#serveHttp2(stream, shared);
      case "http1":
        return this.#serveHttp1(stream, shared);
    }
    const reason = WHY_NOT[protocol];
    this.options.turnedAway(stream.remoteAddress, reason);
    if (protocol === "unknown" && this.options.mode !== "http-connect") {
      // An invalid preface (RFC 9113 §3.4): the engine says what it saw.
      this.#serveHttp2(stream, shared);
      return;
    }
    // A plain answer helps people who look at the wire; TLS would not show it.
    const answer = protocol === "tls" ? undefined : refusalBytes(400, reason);
    unawaited("socket", turnAway(stream, answer));
  }

  #servable(protocol: SniffedProtocol): "http1" | "http2" | undefined {
    const { mode } = this.options;
    if (protocol === "http2" && mode !== "http-connect") return "http2";
    if (protocol === "http1" && mode !== "grpc") return "http1";
    return undefined;
  }

  #serveHttp1(stream: Stream, shared: SharedLimits): void {
    this.options.counted?.(1);
    new ConnectSession(conduitOf(stream), stream, this.#connect, shared);
  }

  #serveHttp2(stream: Stream, sharedLimits: SharedLimits): void {
    const { timers, keepaliveMs, ended } = this.options;
    const connection: Connection = openServerConnection(stream, {
      serves: this.options.routerFor(stream),
      timers,
      keepalive: { intervalMs: keepaliveMs, timeoutMs: PING_TIMEOUT_MS },
      receiveBudget: this.options.receiveBudget,
      sharedLimits,
      events: {
        onClosed: (end) => {
          this.#connections.delete(connection);
          if (end.error instanceof WireError) sharedLimits.fault?.();
          ended?.(end);
        },
      },
    });
    this.#connections.add(connection);
    if (this.#ending !== undefined) connection.shutdown(this.#ending);
  }
}

const WHY_NOT: Readonly<Record<SniffedProtocol, string>> = {
  http1: "Cannot serve HTTP/1.1 here: this frontend has --mode=grpc; " +
    "use --mode=auto or http-connect for CONNECT",
  http2: "Cannot serve gRPC here: this frontend has --mode=http-connect; " +
    "use --mode=auto or grpc",
  tls: "Cannot serve TLS here: this frontend is plain (a unix socket); " +
    "connect without TLS",
  unknown: "Cannot serve this client: its first bytes are neither HTTP/1.1 " +
    "nor HTTP/2",
};
