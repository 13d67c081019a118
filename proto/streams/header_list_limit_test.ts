import { assert, assertEquals, assertThrows } from "@std/assert";
import { engineAndPeer } from "../../tests/support/memory/engine_pair.ts";
import {
  requestFields,
  StreamLog,
} from "../../tests/support/watch/stream_log.ts";
import { responseFields } from "../../tests/support/watch/stream_log.ts";
import { SettingId } from "../frames/frame.ts";
import { ErrorCode } from "../frames/wire_error.ts";
import { ConnectionUnavailableError } from "./connection_events.ts";
import { problemOfHeaderList } from "./settings.ts";

// The peer's MAX_HEADER_LIST_SIZE (RFC 9113 §6.5.2 and §10.5.1).

const LARGE = [{ name: "x-large", value: "x".repeat(1000) }];

function limit(bytes: number) {
  const id = SettingId.MAX_HEADER_LIST_SIZE;
  return {
    type: "SETTINGS",
    ack: false,
    settings: [{ id, value: bytes }],
  } as const;
}

Deno.test("a header list is counted with 32 bytes for each field", () => {
  const fields = [{ name: "ab", value: "cde" }, { name: "f", value: "" }];
  assertEquals(problemOfHeaderList(fields, 5 + 1 + 64), undefined);
  assertEquals(
    problemOfHeaderList(fields, 5 + 1 + 63),
    "the header list has 70 bytes, the peer takes at most 69",
  );
  assertEquals(problemOfHeaderList(LARGE, Infinity), undefined);
});

Deno.test("a request that the peer would not take is not sent, and the next is", () => {
  const { peer, connection } = engineAndPeer("client");
  peer.send(limit(500));
  peer.wants("SETTINGS ack");
  assertThrows(
    () =>
      connection.openStream(requestFields("/", LARGE), true, new StreamLog()),
    ConnectionUnavailableError,
    "the peer takes at most 500",
  );
  connection.openStream(requestFields(), true, new StreamLog());
  peer.wants("HEADERS 1 POST end");
});

Deno.test("a request that waited while the limit fell fails alone", () => {
  const { engine, peer, connection } = engineAndPeer("client");
  peer.send({ type: "SETTINGS", ack: false, settings: [{ id: 3, value: 0 }] });
  const logs = [LARGE, []].map((extra) => {
    const log = new StreamLog();
    connection.openStream(requestFields("/", extra), true, log);
    return log;
  });
  peer.listen();
  peer.received.length = 0;
  peer.send({
    type: "SETTINGS",
    ack: false,
    settings: [{ id: 6, value: 500 }, { id: 3, value: 9 }],
  });
  assertEquals(logs[0]!.events, [`reset local ${ErrorCode.INTERNAL_ERROR}`]);
  assert(logs[0]!.resetBy!.reason.includes("at most 500"));
  assertEquals(logs[1]!.events, []);
  // Its id was never used, and needs no frame (§5.1.1).
  peer.wants("SETTINGS ack", "HEADERS 3 POST end");
  assertEquals([connection.openStreams, engine.ends.length], [1, 0]);
});

for (const part of ["head", "trailers"]) {
  Deno.test(`a response whose ${part} the peer would not take fails its stream only`, () => {
    const { engine, peer, connection } = engineAndPeer("server");
    peer.send(limit(500));
    peer.headers(1, requestFields());
    peer.headers(3, requestFields());
    const [log, other] = engine.accepted;
    const { stream } = log!;
    if (part === "trailers") stream!.sendHeaders(responseFields(), false);
    peer.listen();
    peer.received.length = 0;
    stream!.sendHeaders([...responseFields(), ...LARGE], part === "trailers");
    peer.wants(`RST_STREAM 1 ${ErrorCode.INTERNAL_ERROR}`);
    assert(log!.resetBy!.reason.includes("at most 500"));
    // What the answering code still tries goes nowhere, as after any reset.
    assertEquals(stream!.write(new Uint8Array(9)), 0);
    stream!.sendHeaders(responseFields(), true);
    stream!.end();
    peer.wants();
    other!.stream!.sendHeaders(responseFields(), true);
    peer.wants("HEADERS 3 200 end");
    assertEquals([connection.openStreams, engine.ends.length], [1, 0]);
  });
}
