import { assertEquals } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import { ByteQueue, CHUNK_COST_BYTES } from "./byte_queue.ts";

Deno.test("bytes leave a queue in the order in which they came", async () => {
  await forAll(100, (prng) => {
    const queue = new ByteQueue(1 << 20);
    const sent = prng.bytes(prng.below(4000));
    const received: number[] = [];
    let offset = 0;
    while (received.length < sent.length) {
      const chunk = sent.slice(offset, offset + prng.below(50));
      offset += chunk.length;
      queue.push(chunk);
      const into = new Uint8Array(1 + prng.below(80));
      received.push(...into.subarray(0, queue.take(into)));
    }
    assertEquals(Uint8Array.from(received), sent);
    assertEquals(queue.isEmpty, true);
    assertEquals(queue.take(new Uint8Array(10)), 0);
  });
});

Deno.test("a queue is full at its limit and has room again below it", () => {
  const queue = new ByteQueue(1000);
  queue.push(new Uint8Array(1000 - CHUNK_COST_BYTES - 1));
  assertEquals(queue.isFull, false);
  queue.push(new Uint8Array(1));
  assertEquals(queue.isFull, true);
  queue.take(new Uint8Array(500));
  assertEquals(queue.isFull, false);
  queue.clear();
  assertEquals([queue.isEmpty, queue.isFull], [true, false]);
});

Deno.test("the smallest chunks fill a queue long before their bytes do", () => {
  const queue = new ByteQueue(64 * 1024);
  let count = 0;
  for (; !queue.isFull; count++) queue.push(new Uint8Array(1));
  assertEquals(count, Math.ceil(64 * 1024 / (1 + CHUNK_COST_BYTES)));
  const into = new Uint8Array(count);
  assertEquals(queue.take(into), count);
  assertEquals(queue.isFull, false);
  queue.push(new Uint8Array(0));
  assertEquals(queue.isEmpty, true);
});
