/**
 * A port for programs on this machine: discovery without TLS and authentication,
 * so it listens on loopback and nowhere else.
 *
 * @module
 */

import { openServerConnection } from "../../../net/http2/server_connection.ts";
import type { Tools } from "../../../platform/program/tools.ts";
import type {
  AdmittedConnection,
  ConnectionLimiter,
} from "../../../net/admission/connection_limiter.ts";
import {
  type BoundListener,
  type ListenAddress,
  listenTcp,
} from "../../../net/listen/listeners.ts";
import type { Stream } from "../../../net/stream/stream.ts";
import type { MethodHandler } from "../../../proto/grpc/call.ts";
import type { Connection } from "../../../proto/streams/connection.ts";
import type { ReceiveBudget } from "../../../proto/streams/receive_budget.ts";
import type { CallOrigin } from "../access/subscriber.ts";

/** PING a client after this long without a sign of life, milliseconds. */
const KEEPALIVE_MS = 30_000;

/** Longest wait for the answer to a PING, as grpc-go's default. */
const PING_TIMEOUT_MS = 20_000;

/** What the port takes from the server. */
export interface DiscoveryPortEnvironment extends Tools {
  readonly receiveBudget: ReceiveBudget;
  /** Counts these clients together with all others. */
  readonly limiter: ConnectionLimiter;
  methods(origin: CallOrigin): Readonly<Record<string, MethodHandler>>;
}

/** See the module description. */
export class DiscoveryPort {
  readonly #listener: BoundListener;
  readonly #connections = new Set<Connection>();

  /**
   * Opens the port.
   *
   * @param at An address of loopback: the caller has seen to it.
   * @throws {ListenError}
   */
  constructor(
    at: ListenAddress,
    private readonly environment: DiscoveryPortEnvironment,
  ) {
    this.#listener = listenTcp(at, {
      onConnection: (stream) => this.#accept(stream),
      onProblem: (line) => environment.log.warn(line, { code: "TUN513" }),
    });
  }

  get address(): string {
    return this.#listener.address;
  }

  /** Clients make a new connection for the next call. */
  drain(reason: string): void {
    for (const connection of this.#connections) connection.shutdown(reason);
  }

  /** Admits no more clients; calls that run go on to their end. */
  stop(reason: string): void {
    this.#listener.close();
    this.drain(reason);
  }

  #accept(stream: Stream): void {
    const { limiter } = this.environment;
    const admitted = limiter.enter(stream.remoteAddress, () => stream.close());
    if (admitted === undefined) return stream.close();
    // A program on this machine needs no authentication.
    admitted.known();
    stream.onClosed = () => admitted.leave();
    this.#serve(stream, admitted);
  }

  #serve(stream: Stream, admitted: AdmittedConnection): void {
    const { timers, receiveBudget, methods } = this.environment;
    const { remoteAddress, identity } = stream;
    const connection: Connection = openServerConnection(stream, {
      serves: methods({ remoteAddress, identity, needsNoProof: true }),
      timers,
      keepalive: { intervalMs: KEEPALIVE_MS, timeoutMs: PING_TIMEOUT_MS },
      receiveBudget,
      sharedLimits: admitted,
      events: {
        onClosed: () => void this.#connections.delete(connection),
      },
    });
    this.#connections.add(connection);
  }
}
