import { assert, assertEquals, assertThrows } from "@std/assert";
import { Schema } from "./message_codec.ts";
import {
  codeOfHttpStatus,
  codeOfReset,
  GrpcError,
  StatusCode,
  statusName,
  statusOfReset,
} from "./status.ts";
import { FakeStream, fields } from "../../tests/support/memory/fake_stream.ts";
import { forAll } from "../../tests/support/memory/prng.ts";
import type { HeaderField } from "../hpack/header_field.ts";
import { appendMetadata, decodeMetadata, Metadata } from "./metadata.ts";
import {
  appendStatus,
  decodeStatusMessage,
  encodeStatusMessage,
  readStatus,
  STATUS_MESSAGE_BYTES_MAX,
} from "./status_codec.ts";
import { isGrpcContentType } from "./call.ts";
import { frameMessage } from "./message_reader.ts";
import { OutgoingBody } from "./outgoing_body.ts";

const schema = new Schema({
  "a.b": {
    Small: { fields: { text: { type: "string", id: 1 } } },
    Whole: {
      oneofs: { choice: { oneof: ["one", "other"] } },
      fields: {
        wide: { type: "int64", id: 1 },
        bytes: { type: "bytes", id: 2 },
        inner: { type: "Small", id: 3 },
        list: { rule: "repeated", type: "Small", id: 4 },
        named: { keyType: "string", type: "Small", id: 5 },
        one: { type: "Small", id: 6 },
        other: { type: "bool", id: 7 },
      },
    },
  },
});

interface Small {
  readonly text: string;
}

interface Whole {
  readonly wide: string;
  readonly bytes: Uint8Array;
  readonly inner: Small | null;
  readonly list: readonly Small[];
  readonly named: Readonly<Record<string, Small>>;
  readonly one?: Small;
  readonly other?: boolean;
}

const whole = schema.codec<Whole>("a.b.Whole");

Deno.test("what is not on the wire has its default, a message is null", () => {
  const { bytes, ...rest } = whole.decode(new Uint8Array(0));
  assertEquals([...bytes], []);
  assertEquals(rest, { wide: "0", inner: null, list: [], named: {} });
});

Deno.test("what has 64 bits stays exact", () => {
  for (const wide of ["9007199254740993", "-9223372036854775808"]) {
    assertEquals(whole.decode(whole.encode({ wide })).wide, wide);
  }
});

Deno.test("of a choice the last one on the wire is there, alone", () => {
  const both = [
    ...whole.encode({ one: { text: "x" } }),
    ...whole.encode({ other: true }),
  ];
  const { one, other } = whole.decode(Uint8Array.from(both));
  assertEquals([one, other], [undefined, true]);
});

Deno.test("bytes that are no such message are the peer's fault", () => {
  const error = assertThrows(
    () => whole.decode(Uint8Array.of(0x1a, 9)),
    GrpcError,
    "Cannot read a a.b.Whole: ",
  );
  assertEquals(error.code, StatusCode.INVALID_ARGUMENT);
});

Deno.test("a name that no file has is our fault", () => {
  assertEquals(schema.find("a.b.Nobody"), undefined);
  assertThrows(() => schema.type("a.b"), TypeError, "a.b is no message");
});

function encode(metadata: Metadata): HeaderField[] {
  const section: HeaderField[] = [];
  appendMetadata(section, metadata);
  return section;
}

Deno.test("custom metadata is read, what gRPC and HTTP/2 keep is not", () => {
  const metadata = decodeMetadata(fields({
    ":path": "/a/b",
    "content-type": "application/grpc",
    "te": "trailers",
    "grpc-timeout": "1S",
    "grpc-status": "0",
    "grpc-encoding": "gzip",
    "user-agent": "grpc-go/1.83.0",
    "agentid": "a",
  }));
  assertEquals([...metadata], [
    ["grpc-encoding", "gzip"],
    ["user-agent", "grpc-go/1.83.0"],
    ["agentid", "a"],
  ]);
});

Deno.test("-bin values are base64, padded or not, several in one field", () => {
  const metadata = decodeMetadata([
    { name: "a-bin", value: "AQI=" },
    { name: "a-bin", value: "AQI" },
    { name: "b-bin", value: "AQ==,Ag, AwQF" },
    { name: "c-bin", value: "" },
  ]);
  assertEquals(metadata.all("a-bin"), [
    Uint8Array.of(1, 2),
    Uint8Array.of(1, 2),
  ]);
  assertEquals(metadata.all("b-bin"), [
    Uint8Array.of(1),
    Uint8Array.of(2),
    Uint8Array.of(3, 4, 5),
  ]);
  assertEquals(metadata.all("c-bin"), [new Uint8Array(0)]);
});

Deno.test("a -bin value that is not base64 is the peer's fault", () => {
  for (const value of ["!", "A", "AQI=x", "AQ=I"]) {
    assertThrows(
      () => decodeMetadata([{ name: "a-bin", value }]),
      GrpcError,
      "metadata a-bin",
    );
  }
});

Deno.test("text that gRPC does not allow is left out", () => {
  const metadata = decodeMetadata([
    { name: "a", value: "gr\xc3\xb6" },
    { name: "a", value: "tab\there" },
    { name: "a", value: "fine" },
  ]);
  assertEquals(metadata.texts("a"), ["fine"]);
});

Deno.test("metadata is written without padding, secrets never indexed", () => {
  const metadata = new Metadata({ authorization: "Bearer x", A: " y " });
  metadata.add("k-bin", Uint8Array.of(1, 2));
  assertEquals(encode(metadata), [
    { name: "authorization", value: "Bearer x", neverIndex: true },
    { name: "a", value: "y" },
    { name: "k-bin", value: "AQI" },
  ]);
});

Deno.test("metadata that gRPC cannot carry is a bug of the caller", () => {
  const broken: Record<string, string | Uint8Array>[] = [
    { "a b": "x" },
    { "ä": "x" },
    { "": "x" },
    { a: "ö" },
    { a: "line\nbreak" },
    { a: Uint8Array.of(1) },
    { "a-bin": "text" },
  ];
  for (const record of broken) {
    assertThrows(
      () => encode(new Metadata(record)),
      TypeError,
      "Cannot send metadata",
    );
  }
});

Deno.test("printable ASCII stays, the rest and % become percent escapes", () => {
  assertEquals(encodeStatusMessage(""), "");
  assertEquals(encodeStatusMessage(" a ~"), " a ~");
  assertEquals(encodeStatusMessage("100%"), "100%25");
  assertEquals(encodeStatusMessage("größe\n"), "gr%C3%B6%C3%9Fe%0A");
  assertEquals(encodeStatusMessage("日😀"), "%E6%97%A5%F0%9F%98%80");
  assertEquals(encodeStatusMessage("\x7f"), "%7F");
});

Deno.test("broken escapes stay as they are and bad UTF-8 is replaced", () => {
  assertEquals(decodeStatusMessage("a%C3%b6b"), "aöb");
  assertEquals(decodeStatusMessage("50% off"), "50% off");
  assertEquals(decodeStatusMessage("%"), "%");
  assertEquals(decodeStatusMessage("%4"), "%4");
  assertEquals(decodeStatusMessage("%zz%41"), "%zzA");
  assertEquals(decodeStatusMessage("%+1"), "%+1");
  assertEquals(decodeStatusMessage("%ff"), "\ufffd");
  // Raw UTF-8, against the rules, arrives as code points 0–255.
  assertEquals(decodeStatusMessage("gr\xc3\xb6"), "grö");
});

Deno.test("a long message is cut between characters", () => {
  const encoded = encodeStatusMessage("ö".repeat(10_000));
  assert(encoded.length <= STATUS_MESSAGE_BYTES_MAX);
  assert(encoded.length > STATUS_MESSAGE_BYTES_MAX - 6);
  assertEquals(
    decodeStatusMessage(encoded),
    "ö".repeat(Math.floor(STATUS_MESSAGE_BYTES_MAX / 6)),
  );
  const ascii = encodeStatusMessage("x".repeat(10_000));
  assertEquals(ascii.length, STATUS_MESSAGE_BYTES_MAX);
});

Deno.test("any text comes back as it was", async () => {
  await forAll(200, (prng) => {
    const points = Array.from(
      { length: prng.below(40) },
      () => prng.pick([prng.below(0x80), prng.below(0xd800), 0x1f600]),
    );
    const text = String.fromCodePoint(...points);
    const encoded = encodeStatusMessage(text);
    assert(/^[ -~]*$/.test(encoded), encoded);
    assertEquals(decodeStatusMessage(encoded), text);
  });
});

Deno.test("HTTP statuses map as http-grpc-status-mapping.md says", () => {
  const seen = [400, 401, 403, 404, 429, 500, 502, 503, 504, 200, 302, NaN]
    .map((status) => `${status} ${statusName(codeOfHttpStatus(status))}`);
  assertEquals(seen, [
    "400 INTERNAL",
    "401 UNAUTHENTICATED",
    "403 PERMISSION_DENIED",
    "404 UNIMPLEMENTED",
    "429 UNAVAILABLE",
    "500 UNKNOWN",
    "502 UNAVAILABLE",
    "503 UNAVAILABLE",
    "504 UNAVAILABLE",
    "200 UNKNOWN",
    "302 UNKNOWN",
    "NaN UNKNOWN",
  ]);
});

Deno.test("every RST_STREAM code maps as PROTOCOL-HTTP2 says", () => {
  const seen = Array.from(
    { length: 15 },
    (_, code) => statusName(codeOfReset(code)),
  );
  assertEquals(seen, [
    ...Array(7).fill("INTERNAL"),
    "UNAVAILABLE",
    "CANCELLED",
    "INTERNAL",
    "INTERNAL",
    "RESOURCE_EXHAUSTED",
    "PERMISSION_DENIED",
    "UNKNOWN",
    "UNKNOWN",
  ]);
});

Deno.test("a lost or refused stream is UNAVAILABLE whatever its code", () => {
  for (const by of ["lost", "refused"] as const) {
    const status = statusOfReset({ by, code: 8, reason: "gone" });
    assertEquals(status, {
      code: StatusCode.UNAVAILABLE,
      message: "gone",
      // RFC 9113 §8.7: it can be made again, whatever it says.
      ...(by === "refused" ? { isUnprocessed: true } : {}),
    });
  }
});

Deno.test("a status is written and read back", () => {
  const section: HeaderField[] = [];
  appendStatus(section, { code: StatusCode.NOT_FOUND, message: "kein Böse" });
  assertEquals(
    section,
    fields({ "grpc-status": "5", "grpc-message": "kein B%C3%B6se" }),
  );
  assertEquals(readStatus(section), {
    code: 5,
    message: "kein Böse",
    tunnelCode: undefined,
  });
  const plain: HeaderField[] = [];
  appendStatus(plain, { code: StatusCode.OK, message: "" });
  assertEquals(plain, fields({ "grpc-status": "0" }));
});

Deno.test("codes that gRPC does not have are UNKNOWN, none at all is none", () => {
  assertEquals(readStatus(fields({ "grpc-message": "x" })), undefined);
  for (const text of ["17", "-1", "", "abc", "0x1", "1.0", "9999"]) {
    const status = readStatus(fields({ "grpc-status": text }));
    assertEquals(status?.code, StatusCode.UNKNOWN, text);
  }
});

Deno.test("gRPC content types are told from their neighbours", () => {
  for (
    const yes of [
      "application/grpc",
      "application/grpc+proto",
      "application/grpc;charset=utf-8",
      "Application/GRPC",
    ]
  ) assertEquals(isGrpcContentType(yes), true, yes);
  for (
    const no of [
      undefined,
      "",
      "application/grpc-web",
      "application/grpcx",
      "text/html",
    ]
  ) assertEquals(isGrpcContentType(no), false, no);
});

Deno.test("what does not fit is kept as a copy and there is no room meanwhile", () => {
  const stream = new FakeStream();
  stream.credit = 6;
  const body = new OutgoingBody(stream);
  const message = Uint8Array.of(1, 2, 3);
  assertEquals(body.sendMessage(message), false);
  message.fill(9);
  assertEquals(body.keptBytes, 2);
  assertEquals(stream.isAwaitingRoom, true);
  stream.credit = 100;
  assertEquals(body.room, 0);
  assertThrows(
    () => body.sendFrame(message, message),
    RangeError,
    "2 bytes are kept",
  );
  assertEquals(body.resume(), true);
  assertEquals(stream.body, [0, 0, 0, 0, 3, 1, 2, 3]);
  assertEquals(body.room, stream.room);
});

Deno.test("a shared rest is one message with its head, and kept as it is", () => {
  const shared = Uint8Array.of(3, 4, 5);
  const whole = [0, 0, 0, 0, 5, 1, 2, 3, 4, 5];
  for (let credit = 0; credit <= whole.length; credit++) {
    const stream = new FakeStream();
    stream.credit = credit;
    const body = new OutgoingBody(stream);
    const message = Uint8Array.of(1, 2);
    const isAllSent = credit === whole.length;
    assertEquals(body.sendMessage(message, shared), isAllSent);
    message.fill(9);
    assertEquals(stream.isAwaitingRoom, !isAllSent);
    // Less than the head of the message is not begun with.
    assertEquals(body.keptBytes, credit < 7 ? 10 : 10 - credit);
    assertEquals(body.sendMessage(message, new Uint8Array(0)), false);
    stream.credit = 100;
    assertEquals(body.resume(), true);
    assertEquals(stream.body, [...whole, 0, 0, 0, 0, 2, 9, 9]);
  }
});

Deno.test("the ending runs at once when nothing is kept, else behind it", () => {
  const stream = new FakeStream();
  const body = new OutgoingBody(stream);
  body.endWith(() => stream.log.push("first"));
  stream.credit = 0;
  body.sendMessage(new Uint8Array(3));
  body.endWith(() => stream.end());
  stream.credit = 4;
  assertEquals(body.resume(), false);
  stream.credit = 4;
  assertEquals(body.resume(), true);
  assertEquals(stream.log, ["first", "data 4", "data 4", "end"]);
});

Deno.test("dropped bytes and endings never leave", () => {
  const stream = new FakeStream();
  stream.credit = 0;
  const body = new OutgoingBody(stream);
  body.sendMessage(new Uint8Array(3));
  body.endWith(() => stream.end());
  body.drop();
  stream.credit = 100;
  assertEquals(body.resume(), true);
  assertEquals([stream.log, body.keptBytes], [[], 0]);
});

Deno.test("messages leave whole and in order whatever room there is", async () => {
  await forAll(200, (prng) => {
    const stream = new FakeStream();
    const body = new OutgoingBody(stream);
    const wanted: number[] = [];
    for (let step = 0; step < 30; step++) {
      stream.frameBytesMax = 1 + prng.below(40);
      stream.credit = prng.pick([0, prng.below(10), prng.below(200)]);
      if (prng.below(2) === 0) body.resume();
      const message = prng.bytes(prng.below(60));
      wanted.push(...frameMessage(message));
      const isAllSent = body.sendMessage(message);
      message.fill(0xee);
      assertEquals(isAllSent, body.keptBytes === 0);
      assertEquals(stream.body.length + body.keptBytes, wanted.length);
    }
    stream.credit = Infinity;
    body.resume();
    assertEquals(stream.body, wanted);
  });
});
