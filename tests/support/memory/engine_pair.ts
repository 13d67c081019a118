/**
 * Engines set up for tests: one whose other end a test plays, or two joined.
 *
 * @module
 */

import type { HeaderField } from "../../../proto/hpack/header_field.ts";
import { Connection } from "../../../proto/streams/connection.ts";
import type {
  ConnectionEnd,
  ConnectionOptions,
  GoawayInfo,
  Role,
} from "../../../proto/streams/connection_events.ts";
import type { Stream, StreamEvents } from "../../../proto/streams/stream.ts";
import { FakeTimers } from "./fake_timers.ts";
import { MemoryPipe } from "./memory_pipe.ts";
import type { Prng } from "./prng.ts";
import { ScriptedHttp2Peer } from "../peers/scripted_http2_peer.ts";
import { requestFields, StreamLog } from "../watch/stream_log.ts";

/** What may differ between tests. */
export type EngineOptions = Partial<
  Pick<
    ConnectionOptions,
    | "settings"
    | "keepalive"
    | "limits"
    | "receiveBudget"
    | "firstStreamId"
    | "clock"
  >
>;

/** An engine, and what happened to it. */
export class Engine {
  readonly clock: FakeTimers = new FakeTimers();
  readonly connection: Connection;
  /** Streams that the peer opened, in order. */
  readonly accepted: StreamLog[] = [];
  readonly ends: ConnectionEnd[] = [];
  readonly goaways: GoawayInfo[] = [];
  exhausted = 0;
  /** What to do with a new stream, before its headers are delivered. */
  onStream: (log: StreamLog, stream: Stream) => void = () => {};
  /** Who hears of a new stream in place of its log. */
  serve: ((stream: Stream) => StreamEvents) | undefined;

  constructor(role: Role, options: EngineOptions = {}) {
    this.connection = new Connection({
      role,
      clock: this.clock,
      ...options,
      events: {
        onStream: (stream) => {
          const log = new StreamLog(stream);
          this.accepted.push(log);
          this.onStream(log, stream);
          return this.serve?.(stream) ?? log;
        },
        onGoaway: (info) => this.goaways.push(info),
        onExhausted: () => this.exhausted++,
        onClosed: (end) => this.ends.push(end),
      },
    });
    this.connection.start();
  }
}

/** Opens a request that writes down what happens to it. */
export function openLogged(
  connection: Connection,
  endStream = false,
  fields: readonly HeaderField[] = requestFields(),
): StreamLog & { stream: Stream } {
  const log = new StreamLog();
  const stream = connection.openStream(fields, endStream, log);
  return Object.assign(log, { stream });
}

/** An engine and a scripted peer after the handshake. */
export function engineAndPeer(
  role: Role,
  options: EngineOptions = {},
): { engine: Engine; peer: ScriptedHttp2Peer; connection: Connection } {
  const engine = new Engine(role, options);
  const { connection } = engine;
  const peerRole = role === "client" ? "server" : "client";
  const peer = new ScriptedHttp2Peer(connection, peerRole);
  peer.doHandshake();
  return { engine, peer, connection };
}

/** A client and a server joined in memory after the handshake. */
export function enginePair(
  options: { client?: EngineOptions; server?: EngineOptions; prng?: Prng } = {},
): { client: Engine; server: Engine; pipe: MemoryPipe } {
  const client = new Engine("client", options.client);
  const server = new Engine("server", options.server);
  const pipe = new MemoryPipe(
    client.connection,
    server.connection,
    options.prng,
  );
  pipe.settle();
  return { client, server, pipe };
}
