import { assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import { ConnectionIds, readConnectionId } from "./connection_id.ts";

Deno.test("ids have 16 digits and are below 2^63", () => {
  const ids = new ConnectionIds((bytes) => bytes.fill(0xff));
  assertEquals(ids.next(), "7fffffffffffffff");
});

Deno.test("one piece of randomness serves 64 ids", () => {
  let calls = 0;
  const ids = new ConnectionIds((bytes) => {
    calls++;
    crypto.getRandomValues(bytes);
  });
  const seen = new Set(Array.from({ length: 128 }, () => ids.next()));
  assertEquals(seen.size, 128);
  assertEquals(calls, 2);
  for (const id of seen) assertMatch(id, /^[0-7][0-9a-f]{15}$/);
});

Deno.test("what looks like a count is not made", () => {
  let calls = 0;
  const ids = new ConnectionIds((bytes) => bytes.fill(calls++));
  assertEquals(ids.next(), "0101010101010101");
});

Deno.test("a peer's id is 16 lower-case digits, and no count", () => {
  const id = "00f067aa0ba902b7";
  assertEquals(readConnectionId(id), id);
  assertNotEquals(readConnectionId("ffffffffffffffff"), undefined);
  for (
    const text of [
      undefined,
      "",
      "0000000000000000",
      "00000000ffffffff",
      "00F067AA0BA902B7",
      "00f067aa0ba902b",
      "00f067aa0ba902b7\n",
      " 00f067aa0ba902b7",
      "00f067aa0ba902b77",
    ]
  ) assertEquals(readConnectionId(text), undefined);
});
