import { assert, assertEquals } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import {
  decodeStatusMessage,
  encodeStatusMessage,
  STATUS_MESSAGE_BYTES_MAX,
} from "./status_codec.ts";

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
