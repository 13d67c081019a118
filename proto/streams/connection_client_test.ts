import { assert, assertEquals, assertThrows } from "@std/assert";
import {
  Engine,
  engineAndPeer,
  openLogged,
} from "../../tests/support/memory/engine_pair.ts";
import { ScriptedHttp2Peer } from "../../tests/support/peers/scripted_http2_peer.ts";
import {
  requestFields,
  responseFields,
  StreamLog,
} from "../../tests/support/watch/stream_log.ts";
import { ConnectionUnavailableError } from "./connection_events.ts";
import { STREAM_IDS_RESERVED } from "./stream_table.ts";

// The client role against a scripted server, often a hostile one.

const open = ({ connection }: Engine, endStream = false) =>
  openLogged(connection, endStream);

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

Deno.test("what a peer said with its GOAWAY is why the calls that it had begun are lost", () => {
  const { engine, peer } = engineAndPeer("client");
  const log = open(engine, true);
  peer.goaway(1, 11, "too much work");
  engine.connection.receiveEnd();
  const reason = "the peer said GOAWAY: ENHANCE_YOUR_CALM too much work";
  assertEquals(log.resetBy, { by: "lost", code: 11, reason });
  assertEquals(engine.ends[0]!.reason, reason);
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

const length = (value: string) => ({ name: "content-length", value });
const X = { name: "x", value: "y" };

/** What a server sends, and what our client says to it. */
// deno-fmt-ignore: a case is a line.
const HOSTILE: readonly [
  name: string,
  answer: string,
  send: (peer: ScriptedHttp2Peer) => void,
][] = [
  ["PUSH_PROMISE", "GOAWAY 0 1", (peer) =>
    peer.send({
      ...{ type: "PUSH_PROMISE", streamId: 1, promisedId: 2 },
      ...{ endHeaders: true, fragment: new Uint8Array(0) },
    })],
  ["a request", "GOAWAY 0 1", (peer) => peer.headers(2, requestFields())],
  ["a response to nothing", "GOAWAY 0 1", (peer) => peer.headers(3, responseFields())],
  ["DATA on an idle stream", "GOAWAY 0 1", (peer) => peer.data(3, 1)],
  ["RST_STREAM on an idle stream", "GOAWAY 0 1", (peer) => peer.reset(3)],
  ["WINDOW_UPDATE on an idle stream", "GOAWAY 0 1", (peer) => peer.windowUpdate(3, 1)],
  ["a window beyond 2^31-1", "GOAWAY 0 3", (peer) => peer.windowUpdate(0, 0x7fff_ffff)],
  ["a stream's window beyond 2^31-1", "RST_STREAM 1 3", (peer) => peer.windowUpdate(1, 0x7fff_ffff)],
  ["DATA before a response", "RST_STREAM 1 1", (peer) => peer.data(1, 1)],
  ["no :status", "RST_STREAM 1 1", (peer) => peer.headers(1, [X])],
  ["the pseudo fields of a request", "RST_STREAM 1 1", (peer) => peer.headers(1, requestFields())],
  ["a 1xx response that ends the stream", "RST_STREAM 1 1", (peer) => peer.headers(1, responseFields("100"), true)],
  ["101 Switching Protocols", "RST_STREAM 1 1", (peer) => peer.headers(1, responseFields("101"))],
  ["trailers that do not end the stream", "RST_STREAM 1 1", (peer) => {
    peer.headers(1, responseFields());
    peer.headers(1, [X]);
  }],
  ["less than its content-length", "RST_STREAM 1 1", (peer) => {
    peer.headers(1, [...responseFields(), length("5")]);
    peer.data(1, 4, true);
  }],
  ["a block that is not HPACK", "GOAWAY 0 9", (peer) =>
    peer.send({
      ...{ type: "HEADERS", streamId: 1, endStream: false },
      ...{ endHeaders: true, fragment: Uint8Array.of(0x80) },
    })],
  ["ENABLE_PUSH = 1", "GOAWAY 0 1", (peer) => peer.settings({ id: 2, value: 1 })],
  ["MAX_FRAME_SIZE below its range", "GOAWAY 0 1", (peer) => peer.settings({ id: 5, value: 100 })],
  ["INITIAL_WINDOW_SIZE above its range", "GOAWAY 0 3", (peer) => peer.settings({ id: 4, value: 0x8000_0000 })],
  ["another frame inside a header block", "GOAWAY 0 1", (peer) => {
    peer.send({
      ...{ type: "HEADERS", streamId: 1, endStream: false },
      ...{ endHeaders: false, fragment: new Uint8Array(0) },
    });
    peer.send({ type: "UNKNOWN", code: 99, streamId: 0, payloadBytes: 0 });
  }],
];

for (const [name, answer, send] of HOSTILE) {
  Deno.test(`a client is safe from a server that sends ${name}`, () => {
    const { engine, peer, connection } = engineAndPeer("client");
    const log = open(engine);
    peer.wants("HEADERS 1 POST");
    send(peer);
    peer.wants(answer);
    const isOver = answer.startsWith("GOAWAY");
    assertEquals(log.resetBy?.by, isOver ? "lost" : "local");
    const codes = engine.ends.map(({ code }) => `GOAWAY 0 ${code}`);
    assertEquals(codes, isOver ? [answer] : []);
    assertEquals([connection.isFinished, connection.isUsable], [
      isOver,
      !isOver,
    ]);
  });
}

Deno.test("a response to HEAD, 204 and 304 may talk of a length it has not", () => {
  for (const status of ["204", "304"]) {
    const { engine, peer } = engineAndPeer("client");
    const log = open(engine, true);
    peer.headers(1, [...responseFields(status), length("99")], true);
    assertEquals(log.events, [`headers ${status}`, "end"]);
  }
  const { engine, peer } = engineAndPeer("client");
  const log = new StreamLog();
  const fields = requestFields().map((field) =>
    field.name === ":method" ? { ...field, value: "HEAD" } : field
  );
  log.stream = engine.connection.openStream(fields, true, log);
  peer.headers(1, [...responseFields(), length("99")], true);
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
  peer.pong(0, 0, 0, 1, 0, 0, 0, 1);
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
  peer.pong(0, 0, 0, 1, 0, 0, 0, 1);
  assertEquals(connection.rttMs, 40);
  assertEquals(connection.lastHeardMs, engine.clock.now());
});
