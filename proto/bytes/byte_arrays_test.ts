import { assert, assertEquals } from "@std/assert";
import { joinedBytes } from "./byte_arrays.ts";

Deno.test("bytes are put together in order, in memory of their own", () => {
  const one = Uint8Array.of(1, 2);
  assertEquals(joinedBytes([]), new Uint8Array(0));
  assertEquals(
    joinedBytes([one, new Uint8Array(0), Uint8Array.of(3)]),
    Uint8Array.of(1, 2, 3),
  );
  assert(joinedBytes([one]).buffer !== one.buffer);
});
