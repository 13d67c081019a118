/**
 * Discovery for programs on this machine: clients on loopback are passed on to
 * a server under the node's identity, because gRPC clients and Envoy have no
 * identity of the tunnel.
 *
 * The server learns that the requests are a relay's (`tunnel-relay`), and where
 * the clients can ask for connections (`tunnel-connect`).
 *
 * @module
 */

import { openServerConnection } from "../../net/http2/server_connection.ts";
import { messageOf } from "../../platform/errors/error_code.ts";
import type { Upstream } from "../../net/channel/upstream.ts";
import { Channel, type ChannelConnection } from "../../net/channel/channel.ts";
import {
  type BoundListener,
  type ListenAddress,
  listenTcp,
} from "../../net/listen/listeners.ts";
import type { Log } from "../../platform/log/log.ts";
import type { Stream } from "../../net/stream/stream.ts";
import { within } from "../../platform/time/deadline.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type { ServerCall, ServerCallEvents } from "../../proto/grpc/call.ts";
import { startCall } from "../../proto/grpc/client.ts";
import { encodingOf } from "../../proto/grpc/message_reader.ts";
import { Metadata } from "../../proto/grpc/metadata.ts";
import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import type { Connection } from "../../proto/streams/connection.ts";
import { adsMethods } from "../../proto/xds/ads_methods.ts";
import {
  CONNECT_FIELD,
  MORE_CONNECT_FIELD,
  RELAY_FIELD,
} from "../../proto/xds/relay_fields.ts";
import { RelayedCall } from "./relayed_call.ts";

/** Programs of one machine that ask at once; each has one connection, or two. */
const PROGRAMS_MAX = 256;

/** Streams of one program: one for each kind, both ways, and room. */
export const STREAMS_PER_PROGRAM_MAX = 32;

/**
 * Streams of all programs: as many as a server takes on one connection. One more
 * would wait there for another to end, and its program would not know why.
 */
export const STREAMS_MAX = 1_000;

/**
 * After a failed attempt to connect, new streams get its error for this long.
 */
const RELAY_RETRY_MS = 1_000;

/** How long a caller waits for a running attempt. */
export const WAIT_MS = 5_000;

/** PING a silent server after this long; it is gone after both. */
const SERVER_KEEPALIVE = { intervalMs: 10_000, timeoutMs: 10_000 };

/** PING a program after this long without a sign of life. */
const KEEPALIVE = { intervalMs: 30_000, timeoutMs: 20_000 };

/** What the relay needs from outside. */
interface AdsRelayOptions {
  /** An address of loopback: the caller has seen to it. */
  readonly listen: ListenAddress;
  /** To servers, as the node. */
  readonly upstream: Upstream;
  /** The address where programs ask for connections; absent: none. */
  readonly connectAddress?: string | undefined;
  /** The number of further `connectHost` addresses; none unless given. */
  readonly moreConnect?: number | undefined;
  readonly log: Log;
}

export class AdsRelay {
  readonly #listener: BoundListener;
  readonly #channel: Channel;
  readonly #programs = new Set<Connection>();
  readonly #calls = new Set<RelayedCall>();
  #isClosed = false;

  /** @throws {ListenError} */
  constructor(private readonly options: AdsRelayOptions) {
    this.#channel = new Channel({
      upstream: options.upstream,
      timers: systemTimers,
      keepalive: SERVER_KEEPALIVE,
      failedMs: RELAY_RETRY_MS,
    });
    this.#listener = listenTcp(options.listen, {
      onConnection: (conn) => this.#accept(conn),
      onProblem: (line) => options.log.warn(line, { code: "TUN513" }),
    });
  }

  /** `ip:port` as bound. */
  get address(): string {
    return this.#listener.address;
  }

  /** Streams that are passed on now. */
  get streams(): number {
    return this.#calls.size;
  }

  /**
   * Accepts no new stream; running streams end, because this node is stopping.
   */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#listener.close();
    const message = "the relay on this node is stopping";
    const status = { code: StatusCode.UNAVAILABLE, message };
    for (const call of [...this.#calls]) call.fail(status);
    for (const program of this.#programs) program.shutdown(message);
    this.#channel.close(message);
  }

  #accept(conn: Stream): void {
    if (this.#programs.size >= PROGRAMS_MAX) {
      this.options.log.warn(
        `Cannot relay discovery for more than ${PROGRAMS_MAX} programs at once`,
        { code: "TUN409" },
      );
      return conn.close();
    }
    const program: Connection = openServerConnection(conn, {
      serves: adsMethods(() => (call) => this.#relay(call)),
      timers: systemTimers,
      keepalive: KEEPALIVE,
      settings: { maxConcurrentStreams: STREAMS_PER_PROGRAM_MAX },
      events: {
        onClosed: () => void this.#programs.delete(program),
      },
    });
    this.#programs.add(program);
  }

  #relay(call: ServerCall): ServerCallEvents {
    if (encodingOf(call.metadata) !== "identity") {
      throw new GrpcError(
        StatusCode.UNIMPLEMENTED,
        "Cannot relay compressed messages: discovery has none",
      );
    }
    if (this.#calls.size >= STREAMS_MAX) {
      throw new GrpcError(
        StatusCode.RESOURCE_EXHAUSTED,
        `Cannot relay more than ${STREAMS_MAX} discovery streams at once`,
      );
    }
    const relayed = new RelayedCall(call, () => this.#calls.delete(relayed));
    this.#calls.add(relayed);
    const connection = this.#channel.take();
    if (connection !== undefined) this.#start(relayed, call.path, connection);
    else {
      this.#connection().then(
        (connection) => this.#start(relayed, call.path, connection),
        (error) => relayed.fail(error),
      );
    }
    return relayed;
  }

  /**
   * Programs that wait are answered that it takes long; the attempt goes on.
   *
   * @throws {GrpcError} UNAVAILABLE, with the reason.
   */
  async #connection(): Promise<ChannelConnection> {
    const late = () => new Error(`no answer within ${WAIT_MS / 1_000} s yet`);
    try {
      return await within(
        { timers: systemTimers, timeoutMs: WAIT_MS, late },
        this.#channel.connection(),
      );
    } catch (error) {
      const reason = messageOf(error);
      throw new GrpcError(
        StatusCode.UNAVAILABLE,
        `no discovery server can be reached: ${reason}`,
      );
    }
  }

  #start(
    relayed: RelayedCall,
    path: string,
    connection: ChannelConnection,
  ): void {
    if (relayed.isOver) return;
    const { http2, authority, scheme } = connection;
    try {
      const call = startCall(http2, {
        path,
        authority,
        scheme,
        metadata: this.#metadata(),
      }, {
        ...relayed.events,
        onStatus: (status, trailers, lost) => {
          // The server is leaving, or not ready: the next stream goes to
          // another one.
          const isTurnedAway = status.code === StatusCode.UNAVAILABLE && !lost;
          if (isTurnedAway) connection.leave("calls go to another server");
          relayed.events.onStatus(status, trailers, lost);
        },
      });
      relayed.open(call);
    } catch (error) {
      relayed.fail(asStatus(error));
    }
  }

  #metadata(): Metadata {
    const { connectAddress, moreConnect = 0 } = this.options;
    return new Metadata({
      [RELAY_FIELD]: "1",
      ...(connectAddress === undefined
        ? {}
        : { [CONNECT_FIELD]: connectAddress }),
      ...(moreConnect === 0
        ? {}
        : { [MORE_CONNECT_FIELD]: String(moreConnect) }),
    });
  }
}

function asStatus(error: unknown): GrpcError {
  if (error instanceof GrpcError) return error;
  throw error;
}
