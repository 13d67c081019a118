import { assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { ReadBuffer, returnBuffer, takeBuffer } from "./read_buffer.ts";

/** The sizes a reader goes through when reads give `counts`. */
function sizes(counts: readonly (number | "full")[]): number[] {
  const reader = new ReadBuffer();
  const seen = [reader.buffer.length];
  for (const count of counts) {
    reader.adapt(count === "full" ? reader.buffer.length : count);
    seen.push(reader.buffer.length);
  }
  reader.release();
  return seen;
}

Deno.test("full reads go up to the biggest size", () => {
  assertEquals(sizes(["full", "full", "full"]), [512, 16384, 131072, 131072]);
});

Deno.test("a small message after a big one is waited for in a small buffer", () => {
  assertEquals(sizes(["full", "full", 100]), [512, 16384, 131072, 16384]);
  assertEquals(sizes(["full", 100, 100]), [512, 16384, 512 * 4, 512]);
});

Deno.test("a message cut by a full buffer does not bounce between sizes", () => {
  // 1024 octets, first read as 512 + 512, then whole, for ever.
  assertEquals(sizes(["full", 512, 1024, 1024]), [
    512,
    16384,
    2048,
    2048,
    2048,
  ]);
});

Deno.test("buffers are used again", () => {
  const buffer = takeBuffer(600);
  assertEquals(buffer.length, 2048);
  returnBuffer(buffer);
  assertStrictEquals(takeBuffer(2048), buffer);
  assertThrows(() => returnBuffer(new Uint8Array(7)), TypeError);
});
