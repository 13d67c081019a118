import { assert, assertEquals, assertThrows } from "@std/assert";
import {
  Engine,
  engineAndPeer,
} from "../../tests/support/memory/engine_pair.ts";
import { ScriptedHttp2Peer } from "../../tests/support/peers/scripted_http2_peer.ts";
import {
  requestFields,
  responseFields,
  StreamLog,
} from "../../tests/support/watch/stream_log.ts";
import type { Frame } from "../frames/frame.ts";
import { ConnectionUnavailableError } from "./connection_events.ts";
import { STREAM_IDS_RESERVED } from "./stream_table.ts";

// The client role against a scripted server, often a hostile one.

function open(engine: Engine, endStream = false): StreamLog {
  const log = new StreamLog();
  log.stream = engine.connection.openStream(requestFields(), endStream, log);
  return log;
}

Deno.test("a client may send its request before the server has said anything", () => {
  const engine = new Engine("client");
  const peer = new ScriptedHttp2Peer(engine.connection, "server");
  const { stream } = open(engine);
  assertEquals(stream!.write(new Uint8Array(4)), 4);
  stream!.end();
  const grown = 1024 * 1024 - 65_535;
  peer.wants(
    "SETTINGS",
    `WINDOW_UPDATE 0 ${grown}`,
    "HEADERS 1 POST",
    "DATA 1 4",
    "DATA 1 0 end",
  );
});

Deno.test("informational responses, a response, a body and trailers arrive in order", () => {
  const { engine, peer } = engineAndPeer("client");
  const log = open(engine, true);
  peer.headers(1, responseFields("103"));
  peer.headers(1, responseFields());
  peer.data(1, 6);
  peer.headers(1, [{ name: "grpc-status", value: "0" }], true);
  assertEquals(log.events, [
    "informational 103",
    "headers 200",
    "data 6",
    "trailers",
    "end",
  ]);
  assertEquals(engine.connection.openStreams, 0);
});

Deno.test("requests above MAX_CONCURRENT_STREAMS wait, in order, with what they want", () => {
  const { engine, peer } = engineAndPeer("client");
  peer.doHandshake([{ id: 3, value: 1 }]);
  const first = open(engine, true);
  const second = open(engine);
  const third = open(engine);
  second.stream!.awaitRoom();
  second.onRoom = () => second.stream!.write(new Uint8Array(2));
  third.stream!.end();
  assertEquals([second.stream!.id, second.stream!.room], [0, 0]);
  peer.wants("HEADERS 1 POST end");
  peer.headers(1, responseFields(), true);
  assertEquals(first.events, ["headers 200", "end"]);
  peer.wants("HEADERS 3 POST", "DATA 3 2");
  second.stream!.reset(8);
  peer.wants("RST_STREAM 3 8", "HEADERS 5 POST end");
  assertEquals(third.events, []);
});

Deno.test("a hundred streams are assumed until SETTINGS come, then any number", () => {
  const engine = new Engine("client");
  const peer = new ScriptedHttp2Peer(engine.connection, "server");
  const logs = Array.from({ length: 150 }, () => open(engine));
  assertEquals(logs.filter(({ stream }) => stream!.id !== 0).length, 100);
  peer.doHandshake();
  assertEquals(logs.filter(({ stream }) => stream!.id !== 0).length, 150);
});

Deno.test("a waiting request that is reset leaves no trace", () => {
  const { engine, peer, connection } = engineAndPeer("client");
  peer.doHandshake([{ id: 3, value: 0 }]);
  const { stream } = open(engine);
  stream!.reset(8);
  assertEquals(connection.openStreams, 0);
  peer.doHandshake([{ id: 3, value: 10 }]);
  peer.wants();
});

Deno.test("GOAWAY refuses the streams above its last, and lets the others end", () => {
  const { engine, peer, connection } = engineAndPeer("client");
  peer.doHandshake([{ id: 3, value: 2 }]);
  const [low, high, waiting] = [open(engine), open(engine), open(engine)];
  peer.goaway(1, 0);
  assertEquals(engine.goaways[0]?.lastStreamId, 1);
  assert(!connection.isUsable);
  assertThrows(() => open(engine), ConnectionUnavailableError, "GOAWAY");
  assertEquals(high.events, ["reset refused 7"]);
  assertEquals(waiting.events, ["reset refused 7"]);
  assertEquals(engine.ends, []);
  low.stream!.end();
  peer.headers(1, responseFields(), true);
  assertEquals(low.events, ["headers 200", "end"]);
  assertEquals(engine.ends[0]?.by, "peer");
});

Deno.test("a client that shuts down ends with its last stream", () => {
  const { engine, peer, connection } = engineAndPeer("client");
  const log = open(engine, true);
  connection.shutdown("done");
  assertThrows(() => open(engine), ConnectionUnavailableError, "closing");
  peer.wants("HEADERS 1 POST end", "GOAWAY 0 0");
  peer.headers(1, responseFields(), true);
  assertEquals(log.events, ["headers 200", "end"]);
  assertEquals(engine.ends, [{ reason: "done", code: 0, by: "local" }]);
  assert(connection.isFinished);
});

Deno.test("near the last stream id another connection is asked for, at the end there is none", () => {
  const last = 0x7fff_ffff;
  const firstStreamId = last - 2 * STREAM_IDS_RESERVED;
  const { engine, peer, connection } = engineAndPeer("client", {
    firstStreamId,
  });
  assert(connection.isUsable);
  const log = open(engine);
  assertEquals(log.stream!.id, firstStreamId);
  assert(!connection.isUsable);
  assertEquals(engine.exhausted, 1);
  open(engine); // The reserve is there to be used.
  assertEquals(engine.exhausted, 1);
  const end = engineAndPeer("client", { firstStreamId: last });
  open(end.engine);
  end.peer.wants(`HEADERS ${last} POST`);
  assertThrows(() => open(end.engine), ConnectionUnavailableError, "used up");
  peer.listen();
});

Deno.test("REFUSED_STREAM is told apart from another reset", () => {
  const { engine, peer } = engineAndPeer("client");
  const [one, two] = [open(engine), open(engine)];
  peer.reset(1, 7);
  peer.reset(3, 0xdead);
  assertEquals(one.events, ["reset refused 7"]);
  assertEquals(two.events, [`reset peer ${0xdead}`]);
});

const HOSTILE: readonly {
  readonly name: string;
  readonly send: (peer: ScriptedHttp2Peer) => void;
  /** GOAWAY with this code, or RST_STREAM of the request. */
  readonly goaway?: number;
  readonly reset?: number;
}[] = [
  {
    name: "PUSH_PROMISE",
    send: (peer) =>
      peer.send({
        type: "PUSH_PROMISE",
        streamId: 1,
        promisedId: 2,
        endHeaders: true,
        fragment: new Uint8Array(0),
      }),
    goaway: 1,
  },
  {
    name: "a request of its own",
    send: (peer) => peer.headers(2, requestFields()),
    goaway: 1,
  },
  {
    name: "a response to a request that was never sent",
    send: (peer) => peer.headers(3, responseFields()),
    goaway: 1,
  },
  { name: "DATA on an idle stream", send: (p) => p.data(3, 1), goaway: 1 },
  { name: "RST_STREAM on an idle stream", send: (p) => p.reset(3), goaway: 1 },
  {
    name: "WINDOW_UPDATE on an idle stream",
    send: (peer) => peer.windowUpdate(3, 1),
    goaway: 1,
  },
  {
    name: "a window beyond 2^31-1",
    send: (peer) => peer.windowUpdate(0, 0x7fff_ffff),
    goaway: 3,
  },
  {
    name: "a stream's window beyond 2^31-1",
    send: (peer) => peer.windowUpdate(1, 0x7fff_ffff),
    reset: 3,
  },
  { name: "DATA before a response", send: (p) => p.data(1, 1), reset: 1 },
  {
    name: "a response without :status",
    send: (peer) => peer.headers(1, [{ name: "x", value: "y" }]),
    reset: 1,
  },
  {
    name: "a response with the pseudo fields of a request",
    send: (peer) => peer.headers(1, requestFields()),
    reset: 1,
  },
  {
    name: "a 1xx response that ends the stream",
    send: (peer) => peer.headers(1, responseFields("100"), true),
    reset: 1,
  },
  {
    name: "101 Switching Protocols",
    send: (peer) => peer.headers(1, responseFields("101")),
    reset: 1,
  },
  {
    name: "trailers that do not end the stream",
    send: (peer) => {
      peer.headers(1, responseFields());
      peer.headers(1, [{ name: "x", value: "y" }]);
    },
    reset: 1,
  },
  {
    name: "a body shorter than its content-length",
    send: (peer) => {
      const length = { name: "content-length", value: "5" };
      peer.headers(1, [...responseFields(), length]);
      peer.data(1, 4, true);
    },
    reset: 1,
  },
  {
    name: "a header block that is not HPACK",
    send: (peer) =>
      peer.send({
        type: "HEADERS",
        streamId: 1,
        endStream: false,
        endHeaders: true,
        fragment: Uint8Array.of(0x80),
      }),
    goaway: 9,
  },
  {
    name: "ENABLE_PUSH = 1",
    send: (peer) => peer.send(settings(2, 1)),
    goaway: 1,
  },
  {
    name: "MAX_FRAME_SIZE below its range",
    send: (peer) => peer.send(settings(5, 100)),
    goaway: 1,
  },
  {
    name: "INITIAL_WINDOW_SIZE above its range",
    send: (peer) => peer.send(settings(4, 0x8000_0000)),
    goaway: 3,
  },
  {
    name: "another frame inside a header block",
    send: (peer) => {
      peer.send({
        type: "HEADERS",
        streamId: 1,
        endStream: false,
        endHeaders: false,
        fragment: new Uint8Array(0),
      });
      peer.send({ type: "UNKNOWN", code: 99, streamId: 0, payloadBytes: 0 });
    },
    goaway: 1,
  },
];

for (const { name, send, goaway, reset } of HOSTILE) {
  Deno.test(`a client is safe from a server that sends ${name}`, () => {
    const { engine, peer, connection } = engineAndPeer("client");
    const log = open(engine);
    peer.wants("HEADERS 1 POST");
    send(peer);
    if (goaway !== undefined) {
      peer.wants(`GOAWAY 0 ${goaway}`);
      assertEquals(log.resetBy?.by, "lost");
      assertEquals([engine.ends.length, engine.ends[0]?.code], [1, goaway]);
      assert(connection.isFinished);
    } else {
      peer.wants(`RST_STREAM 1 ${reset}`);
      assertEquals(log.resetBy?.by, "local");
      assertEquals(engine.ends, []);
      assert(connection.isUsable);
    }
  });
}

Deno.test("a response to HEAD, 204 and 304 may talk of a length it has not", () => {
  const length = { name: "content-length", value: "99" };
  for (const status of ["204", "304"]) {
    const { engine, peer } = engineAndPeer("client");
    const log = open(engine, true);
    peer.headers(1, [...responseFields(status), length], true);
    assertEquals(log.events, [`headers ${status}`, "end"]);
  }
  const { engine, peer } = engineAndPeer("client");
  const log = new StreamLog();
  const fields = requestFields().map((field) =>
    field.name === ":method" ? { ...field, value: "HEAD" } : field
  );
  log.stream = engine.connection.openStream(fields, true, log);
  peer.headers(1, [...responseFields(), length], true);
  assertEquals(log.events, ["headers 200", "end"]);
});

Deno.test("a silent peer is asked, and lost when it does not answer", () => {
  const { engine, peer, connection } = engineAndPeer("client", {
    keepalive: { intervalMs: 1000, timeoutMs: 300 },
  });
  const log = open(engine, true);
  peer.wants("HEADERS 1 POST end");
  const pass = (ms: number) => {
    engine.clock.advance(ms);
    connection.onDeadline();
  };
  pass(999);
  peer.wants();
  pass(1);
  peer.wants("PING");
  pass(299);
  peer.headers(1, responseFields()); // Any byte is a sign of life.
  pass(299);
  const opaque = Uint8Array.of(0, 0, 0, 1, 0, 0, 0, 1);
  peer.send({ type: "PING", ack: true, opaque });
  pass(700);
  peer.wants();
  pass(300);
  peer.wants("PING");
  pass(300);
  assertEquals(log.events, ["headers 200", "reset lost 0"]);
  assertEquals(engine.ends[0]?.by, "transport");
  assert(connection.isFinished);
});

Deno.test("a PING that is answered measures the round trip", () => {
  const { engine, peer, connection } = engineAndPeer("client", {
    keepalive: { intervalMs: 1000, timeoutMs: 300 },
  });
  assertEquals(connection.rttMs, undefined);
  engine.clock.advance(1000);
  connection.onDeadline();
  engine.clock.advance(40);
  const opaque = Uint8Array.of(0, 0, 0, 1, 0, 0, 0, 1);
  peer.send({ type: "PING", ack: true, opaque });
  assertEquals(connection.rttMs, 40);
  assertEquals(connection.lastHeardMs, engine.clock.now());
});

function settings(id: number, value: number): Frame {
  return { type: "SETTINGS", ack: false, settings: [{ id, value }] };
}
