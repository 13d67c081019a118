import { assertEquals } from "@std/assert";
import { HELLO_BYTES_MAX, isWholeHello } from "./client_hello.ts";

Deno.test("a first record is answered when all of it is there, not before", () => {
  const record = new Uint8Array([22, 3, 1, 2, 0, ...new Uint8Array(512)]);
  for (let bytes = 0; bytes < record.length; bytes++) {
    assertEquals(isWholeHello(record.subarray(0, bytes)), false);
  }
  assertEquals(isWholeHello(record), true);
});

Deno.test("of a longer one as much is waited for as is looked at", () => {
  const record = new Uint8Array(HELLO_BYTES_MAX);
  record.set([22, 3, 1, 0x40, 0]);
  assertEquals(isWholeHello(record.subarray(1)), true, "no TLS");
  assertEquals(isWholeHello(record.subarray(0, -1)), false);
  assertEquals(isWholeHello(record), true);
});

Deno.test("what is no TLS is let through at once, to be told so", () => {
  assertEquals(isWholeHello(new TextEncoder().encode("G")), true);
});
