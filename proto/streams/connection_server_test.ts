import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import {
  Engine,
  engineAndPeer,
  openLogged,
} from "../../tests/support/memory/engine_pair.ts";
import {
  requestFields,
  responseFields,
} from "../../tests/support/watch/stream_log.ts";
import { ScriptedHttp2Peer } from "../../tests/support/peers/scripted_http2_peer.ts";
import type { Frame } from "../frames/frame.ts";
import { encodeFrame } from "../../tests/support/peers/encoded_frame.ts";
import { DRAIN_ROUND_TRIP_MS } from "./connection_life.ts";
import { SETTINGS_ACK_TIMEOUT_MS } from "./settings_exchange.ts";
import type { Connection } from "./connection.ts";

// The server role against a scripted client. h2spec covers the errors of §4-§8
// in the conformance tests; here are the dialogues that it does not have.

Deno.test("a server says SETTINGS first and acknowledges the client's", () => {
  const engine = new Engine("server");
  const peer = new ScriptedHttp2Peer(engine.connection, "client");
  peer.wants("SETTINGS", `WINDOW_UPDATE 0 ${1024 * 1024 - 65_535}`);
  peer.settings();
  peer.wants("SETTINGS ack");
});

Deno.test("a request is read, and answered with a body and trailers", () => {
  const { engine, peer } = engineAndPeer("server");
  peer.headers(1, requestFields());
  peer.data(1, 5);
  peer.headers(1, [{ name: "x-sum", value: "1" }], true);
  const [log] = engine.accepted;
  assertEquals(log!.events, ["headers request", "data 5", "trailers", "end"]);
  const stream = log!.stream!;
  stream.sendHeaders(responseFields("103"), false);
  stream.sendHeaders(responseFields(), false);
  assertEquals(stream.write(new Uint8Array(3)), 3);
  stream.sendHeaders([{ name: "grpc-status", value: "0" }], true);
  peer.wants("HEADERS 1 103", "HEADERS 1 200", "DATA 1 3", "HEADERS 1 0 end");
  assertEquals(engine.connection.openStreams, 0);
});

Deno.test("a client is away between calls, not before the first and not once we shut down", () => {
  const { engine, peer } = engineAndPeer("server");
  const { connection } = engine;
  assertEquals(connection.isIdle, false);
  peer.headers(1, requestFields(), true);
  assertEquals(connection.isIdle, false);
  engine.accepted[0]!.stream!.sendHeaders(responseFields(), true);
  assertEquals(connection.isIdle, true);
  connection.shutdown("done");
  assertEquals(connection.isIdle, false);
});

Deno.test("a header block may be cut into frames and chunks anywhere", () => {
  const { engine, peer } = engineAndPeer("server");
  const secret = { name: "x-secret", value: "as it was sent" };
  const whole = peer.headersFrame(1, requestFields("/cut", [secret]), true);
  assert(whole.type === "HEADERS");
  const { fragment } = whole;
  peer.send({ ...whole, endHeaders: false, fragment: fragment.slice(0, 3) });
  const cut = (start: number, end?: number): Frame => ({
    type: "CONTINUATION",
    streamId: 1,
    endHeaders: end === undefined,
    fragment: fragment.slice(start, end),
  });
  peer.send(cut(3, 4));
  for (const byte of encodeFrame(cut(4))) {
    peer.sendBytes(Uint8Array.of(byte));
  }
  assertEquals(engine.accepted[0]!.headers, requestFields("/cut", [secret]));
});

Deno.test("any :authority is accepted as gRPC peers send it", () => {
  const { engine, peer } = engineAndPeer("server");
  const authorities = ["%2Frun%2Ftunnel.sock", "/run/tunnel.sock", "", "a:1"];
  authorities.forEach((value, index) => {
    peer.headers(
      index * 2 + 1,
      requestFields().map((field) =>
        field.name === ":authority" ? { ...field, value } : field
      ),
    );
  });
  assertEquals(engine.accepted.length, authorities.length);
  peer.wants();
});

Deno.test("PING is answered at once with its bytes", () => {
  const { peer } = engineAndPeer("server");
  peer.ping(7, 2, 3, 4, 5, 6, 7, 8);
  peer.wants("PING ack 7");
});

Deno.test("streams above our limit are refused and may be tried again", () => {
  const { engine, peer } = engineAndPeer("server", {
    settings: { maxConcurrentStreams: 1 },
  });
  peer.headers(1, requestFields());
  peer.headers(3, requestFields());
  peer.wants("RST_STREAM 3 7");
  engine.accepted[0]!.stream!.reset(8);
  peer.headers(5, requestFields());
  peer.wants("RST_STREAM 1 8");
  assertEquals(engine.accepted.length, 2);
});

Deno.test("frames that were under way when we reset are ignored", () => {
  const { engine, peer } = engineAndPeer("server");
  peer.headers(1, requestFields());
  engine.accepted[0]!.stream!.reset(8);
  peer.data(1, 10);
  peer.headers(1, [{ name: "late", value: "1" }], true);
  peer.windowUpdate(1, 5);
  peer.reset(1);
  // The late block changed the HPACK tables, so the next one still decodes.
  peer.headers(3, requestFields("/", [{ name: "late", value: "1" }]), true);
  peer.wants("RST_STREAM 1 8");
  assertEquals(engine.accepted[1]!.events, ["headers request", "end"]);
});

Deno.test("a reset of the peer's is reported once, and is the last event", () => {
  const { engine, peer } = engineAndPeer("server");
  peer.headers(1, requestFields());
  peer.reset(1, 8);
  const log = engine.accepted[0]!;
  assertEquals(log.events, ["headers request", "reset peer 8"]);
  const stream = log.stream!;
  stream.sendHeaders(responseFields(), true);
  stream.end();
  stream.reset(8);
  stream.consumed(5);
  assertEquals([stream.room, stream.write(new Uint8Array(1))], [0, 0]);
  peer.wants();
});

Deno.test("what breaks a rule of one stream costs only that one", () => {
  const { engine, peer, connection } = engineAndPeer("server");
  peer.headers(
    1,
    requestFields("/", [{ name: "content-length", value: "3" }]),
  );
  peer.headers(3, requestFields());
  peer.data(1, 4);
  peer.wants("RST_STREAM 1 1");
  const reset = engine.accepted[0]!.resetBy;
  assertEquals(reset?.by, "local");
  assertStringIncludes(reset!.reason, "beyond its content-length");
  assert(connection.isUsable);
  assertEquals(connection.openStreams, 1);
});

Deno.test("a header list over our limit costs only its stream", () => {
  const { peer, connection } = engineAndPeer("server", {
    settings: { maxHeaderListSize: 1000 },
  });
  peer.headers(1, requestFields("/", [{ name: "x", value: "y".repeat(2000) }]));
  peer.wants("RST_STREAM 1 11");
  assert(connection.isUsable);
});

Deno.test("a graceful end is announced, and what is under way is served", () => {
  const { engine, peer, connection } = engineAndPeer("server");
  peer.headers(1, requestFields(), true);
  connection.shutdown("maintenance");
  assert(!connection.isUsable);
  peer.wants(`GOAWAY ${0x7fff_ffff} 0`, "PING");
  peer.headers(3, requestFields(), true); // Was under way.
  engine.clock.advance(DRAIN_ROUND_TRIP_MS);
  connection.onDeadline(); // The peer owes the answer to our PING.
  peer.wants("GOAWAY 3 0");
  peer.headers(5, requestFields(), true); // Too late: ignored.
  peer.data(5, 3);
  peer.windowUpdate(5, 10);
  assertEquals(engine.accepted.length, 2);
  for (const { stream } of engine.accepted) {
    stream!.sendHeaders(responseFields(), true);
  }
  assertEquals(engine.ends, [{ reason: "maintenance", code: 0, by: "local" }]);
  assert(!connection.isFinished);
  peer.wants("HEADERS 1 200 end", "HEADERS 3 200 end");
  assert(connection.isFinished);
});

Deno.test("no later GOAWAY claims a stream that the final one disowned", () => {
  const { engine, peer, connection } = engineAndPeer("server");
  peer.headers(1, requestFields(), true);
  connection.shutdown("maintenance");
  engine.clock.advance(DRAIN_ROUND_TRIP_MS);
  connection.onDeadline();
  peer.headers(3, requestFields(), true);
  connection.abort(0, "enough");
  peer.wants(`GOAWAY ${0x7fff_ffff} 0`, "PING", "GOAWAY 1 0", "GOAWAY 1 0");
});

Deno.test("the answer to its PING tells a server that no request is under way", () => {
  const { engine, peer, connection } = engineAndPeer("server");
  connection.shutdown("bye");
  connection.shutdown("twice changes nothing");
  peer.listen();
  peer.pong(0, 0, 0, 3, 0, 0, 0, 1);
  assertEquals(engine.ends.length, 1);
  peer.wants(`GOAWAY ${0x7fff_ffff} 0`, "PING", "GOAWAY 0 0");
  assert(connection.isFinished);
});

Deno.test("a hard end loses all streams and says why, once", () => {
  const { engine, peer, connection } = engineAndPeer("server");
  peer.headers(1, requestFields());
  connection.abort(2, "ran out of luck");
  connection.abort(2, "again");
  assertEquals(engine.accepted[0]!.resetBy?.by, "lost");
  assertEquals(engine.ends.length, 1);
  peer.data(1, 1);
  peer.wants("GOAWAY 1 2");
  assert(connection.isFinished);
  assertEquals(connection.takeOutput(), undefined);
});

Deno.test("after an error of the connection everything ends, in order", () => {
  const { engine, peer, connection } = engineAndPeer("server");
  peer.headers(1, requestFields());
  peer.data(0, 1);
  assertEquals(engine.accepted[0]!.resetBy?.by, "lost");
  const [end] = engine.ends;
  assertEquals([end?.code, end?.by], [1, "local"]);
  assertStringIncludes(end!.reason, "DATA on stream 0");
  peer.headers(3, requestFields()); // Nobody listens any more.
  assertEquals(engine.accepted.length, 1);
  peer.wants("GOAWAY 1 1");
  assert(connection.isFinished);
});

Deno.test("what is not HTTP/2 is recognised by its first bytes", () => {
  const engine = new Engine("server");
  const text = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
  engine.connection.receive(new TextEncoder().encode(text));
  assertEquals(engine.ends.length, 1);
  assertStringIncludes(engine.ends[0]!.reason, "GET / HTTP/1.1");
});

Deno.test("a peer that never acknowledges SETTINGS is left", () => {
  const engine = new Engine("server");
  assertEquals(
    engine.connection.nextDeadlineMs,
    engine.clock.now() + SETTINGS_ACK_TIMEOUT_MS,
  );
  engine.clock.advance(SETTINGS_ACK_TIMEOUT_MS - 1);
  engine.connection.onDeadline();
  assertEquals(engine.ends, []);
  engine.clock.advance(1);
  engine.connection.onDeadline();
  assertEquals(engine.ends[0]?.code, 4);
});

Deno.test("an end of the bytes is in order only between frames and streams", () => {
  for (const [bytes, isClean] of [["", true], ["000008", false]] as const) {
    const { engine, peer, connection } = engineAndPeer("server");
    peer.sendBytes(Uint8Array.from(bytes.match(/../g) ?? [], Number));
    connection.receiveEnd();
    assertEquals(engine.ends[0]?.by, "peer");
    assertEquals(engine.ends[0]?.error === undefined, isClean);
  }
  const { engine, peer, connection } = engineAndPeer("server");
  peer.headers(1, requestFields());
  connection.receiveEnd();
  assertEquals(engine.accepted[0]!.resetBy?.by, "lost");
  assert(engine.ends[0]?.error !== undefined);
});

Deno.test("a transport that breaks is reported as such, and nothing is left", () => {
  const { engine, connection } = engineAndPeer("server");
  connection.abort(0, "no"); // Output is waiting.
  connection.transportClosed(new Error("reset"));
  assert(connection.isFinished);
  const second = engineAndPeer("server");
  second.connection.transportClosed(new Error("reset"));
  assertEquals(second.engine.ends[0]?.by, "transport");
  assertEquals(second.engine.ends[0]?.error?.message, "reset");
  assertEquals(engine.ends.length, 1);
});

Deno.test("last words that nobody reads are given up in time", () => {
  const { engine, connection } = engineAndPeer("server");
  connection.abort(0, "bye");
  connection.takeOutput(); // A write that never completes.
  assert(!connection.isFinished);
  engine.clock.advance(connection.nextDeadlineMs - engine.clock.now());
  connection.onDeadline();
  assert(connection.isFinished);
  assertEquals(connection.nextDeadlineMs, Infinity);
});

// What a driver can rely on: it is told once, and never too late.

function listened(connection: Connection): { calls: number } {
  const count = { calls: 0 };
  connection.setOutputListener(() => count.calls++);
  return count;
}

Deno.test("a driver that comes late is notified of what waits already", () => {
  const { connection } = new Engine("client");
  assertEquals(listened(connection).calls, 1);
});

Deno.test("a driver is notified once per burst, until it has taken everything", () => {
  const { peer, connection } = engineAndPeer("client");
  const received = listened(connection);
  const log = openLogged(connection);
  const { stream } = log;
  stream.write(new Uint8Array(10));
  assertEquals(received.calls, 1);
  connection.takeOutput();
  stream.write(new Uint8Array(10)); // A write is in flight: it looks again.
  assertEquals(connection.takeOutput(), undefined);
  assertEquals(received.calls, 1);
  connection.outputWritten();
  peer.wants("DATA 1 10");
  stream.write(new Uint8Array(10));
  assertEquals(received.calls, 2);
});

Deno.test("an end without a word is reported too, so that the driver can close", () => {
  const { connection } = engineAndPeer("client");
  const received = listened(connection);
  connection.receiveEnd();
  assertEquals([received.calls, connection.isFinished], [1, true]);
});

Deno.test("who asks for room that there is gets it with the next output", () => {
  const { connection } = engineAndPeer("client");
  const log = openLogged(connection);
  const { stream } = log;
  connection.takeOutput();
  connection.outputWritten();
  connection.takeOutput();
  const received = listened(connection);
  stream.awaitRoom();
  assertEquals([received.calls, log.events], [1, []]);
  log.onRoom = () => stream.write(new Uint8Array(4));
  assertEquals(connection.takeOutput()?.length, 13);
  assertEquals(log.events, ["writable"]);
});
