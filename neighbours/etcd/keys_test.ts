import { assertEquals } from "@std/assert";
import { bytesOf, prefixEnd } from "./keys.ts";

Deno.test("a prefix ends before the next key of its length", () => {
  assertEquals(prefixEnd(bytesOf("/tunnel/")), bytesOf("/tunnel0"));
  assertEquals(prefixEnd(Uint8Array.of(1, 0xff, 0xff)), Uint8Array.of(2));
});

Deno.test("a prefix with nothing behind it ends with all keys", () => {
  assertEquals(prefixEnd(Uint8Array.of(0xff)), Uint8Array.of(0));
  assertEquals(prefixEnd(new Uint8Array()), Uint8Array.of(0));
});

Deno.test("a prefix is left as it was", () => {
  const prefix = Uint8Array.of(7);
  prefixEnd(prefix);
  assertEquals(prefix, Uint8Array.of(7));
});
