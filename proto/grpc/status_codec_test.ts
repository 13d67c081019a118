import { assert, assertEquals } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import {
  appendStatus,
  decodeStatusMessage,
  encodeStatusMessage,
  readStatus,
  STATUS_MESSAGE_BYTES_MAX,
} from "./status_codec.ts";
import { fields } from "../../tests/support/memory/fake_stream.ts";
import type { HeaderField } from "../hpack/header_field.ts";
import { isGrpcContentType } from "./call.ts";
import {
  codeOfHttpStatus,
  codeOfReset,
  StatusCode,
  statusName,
  statusOfReset,
} from "./status.ts";

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
  assertEquals(readStatus(section), { code: 5, message: "kein Böse" });
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
