import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import {
  BUFFER_BYTES_MAX,
  sharedBufferPool,
} from "../../proto/bytes/buffer_pool.ts";
import { dataBytesThatFit } from "../../proto/packets/data_head.ts";
import { LARGE_FRAME_SIZE } from "../../proto/streams/settings.ts";
import { ReadBuffer } from "./read_buffer.ts";
import { READ_BYTES_MAX } from "../stream/stream_conduit.ts";

/** The sizes a reader goes through when reads give `counts`. */
function sizes(
  counts: readonly (number | "full")[],
  reader = new ReadBuffer(),
): number[] {
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
  // 1024 bytes, first read as 512 + 512, then whole, for ever.
  assertEquals(sizes(["full", 512, 1024, 1024]), [
    512,
    16384,
    2048,
    2048,
    2048,
  ]);
});

Deno.test("buffers come from the pool of the process, and go back whole", () => {
  const reader = new ReadBuffer(100_000);
  const seen = sizes(["full", "full", "full", 30_000], reader);
  assertEquals(seen, [512, 16384, 100_000, 100_000, 100_000]);
  assertEquals(sharedBufferPool.acquire(BUFFER_BYTES_MAX).length, 131072);
  const small = sharedBufferPool.acquire(512);
  sharedBufferPool.release(small);
  assertStrictEquals(new ReadBuffer().buffer.buffer, small.buffer);
});

Deno.test("a conduit's largest read makes two full frames and no crumb", () => {
  for (const connectId of [0, 1, 2n ** 62n]) {
    const first = dataBytesThatFit(LARGE_FRAME_SIZE, connectId);
    const second = READ_BYTES_MAX - first;
    assert(first < READ_BYTES_MAX && second <= first, `${first} ${second}`);
    assert(second > LARGE_FRAME_SIZE - 100, `${second}`);
  }
});
