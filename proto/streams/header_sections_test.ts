import {
  assert,
  assertEquals,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import type { HeaderField } from "../hpack/header_field.ts";
import { checkSection, type SectionKind } from "./header_sections.ts";
import { engineAndPeer } from "../../tests/support/memory/engine_pair.ts";
import {
  requestFields,
  responseFields,
  StreamLog,
} from "../../tests/support/watch/stream_log.ts";
import { SettingId } from "../frames/frame.ts";
import { ErrorCode } from "../frames/wire_error.ts";
import { ConnectionUnavailableError } from "./connection_events.ts";
import { problemOfHeaderList } from "./settings.ts";

const REQUEST = ":method=GET :scheme=https :path=/ ";
// deno-fmt-ignore: the columns are the point.
const MALFORMED: readonly [SectionKind, string, string][] = [
  ["request",  ":scheme=https :path=/",                  ":method is missing"],
  ["request",  ":method=GET :path=/",                    ":scheme is missing"],
  ["request",  ":method=GET :scheme=https",              ":path is missing"],
  ["request",  ":method=GET :scheme=https :path=",       ":path is missing or empty"],
  ["request",  REQUEST + ":path=/",                      '":path" is there twice'],
  ["request",  REQUEST + ":status=200",                  '":status" does not belong'],
  ["request",  REQUEST + ":protocol=websocket",          '":protocol" does not belong'],
  ["request",  REQUEST + "a=b :authority=x",             "follows a regular field"],
  ["request",  REQUEST + "Accept=x",                     "is no field name in lower case"],
  ["request",  REQUEST + "=x",                           "is no field name in lower case"],
  ["request",  REQUEST + "connection=close",             "connection is specific"],
  ["request",  REQUEST + "keep-alive=1",                 "keep-alive is specific"],
  ["request",  REQUEST + "transfer-encoding=chunked",    "is specific"],
  ["request",  REQUEST + "upgrade=h2c",                  "upgrade is specific"],
  ["request",  REQUEST + "te=gzip",                      'te is "gzip"'],
  ["request",  REQUEST + "content-length=-1",            "content-length is no number"],
  ["request",  REQUEST + "content-length=1 content-length=2", "two different content-lengths"],
  ["request",  REQUEST + "x=a\rb",                       "has a byte it must not"],
  ["request",  REQUEST + "x=\tb",                        "has a byte it must not"],
  ["request",  ":method=CONNECT :authority=a:1 :path=/", "CONNECT has"],
  ["request",  ":method=CONNECT",                        "CONNECT names no target"],
  ["response", "server=x",                               ":status is missing"],
  ["response", ":status=2",                              ':status is "2"'],
  ["response", ":status=101",                            ":status is 101"],
  ["response", ":status=200 :path=/",                    '":path" does not belong'],
  ["trailers", ":status=200",                            '":status" does not belong'],
];

for (const [kind, text, problem] of MALFORMED) {
  Deno.test(`a ${kind} section is malformed: ${JSON.stringify(text)}`, () => {
    const check = checkSection(kind, fields(text));
    assert(!check.ok);
    assertStringIncludes(check.problem, problem);
  });
}

Deno.test("sections that are in order give their facts", () => {
  const request = checkSection(
    "request",
    fields(REQUEST + ":authority= te=trailers content-length=12"),
  );
  assertEquals(request, {
    ok: true,
    facts: { method: "GET", status: 0, contentLength: 12 },
  });
  assert(checkSection("request", fields(":method=CONNECT :authority=a:1")).ok);
  assert(checkSection("trailers", fields("grpc-status=0")).ok);
  assert(checkSection("response", fields(":status=204 x=")).ok);
});

function fields(text: string): HeaderField[] {
  return text.replace(/ $/, "").split(" ").map((pair) => {
    const at = pair.indexOf("=");
    return { name: pair.slice(0, at), value: pair.slice(at + 1) };
  });
}

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
  peer.settings({ id: 3, value: 0 });
  const logs = [LARGE, []].map((extra) => {
    const log = new StreamLog();
    connection.openStream(requestFields("/", extra), true, log);
    return log;
  });
  peer.forget();
  peer.settings({ id: 6, value: 500 }, { id: 3, value: 9 });
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
    peer.forget();
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
