import { assertEquals, assertThrows } from "@std/assert";
import { forAll } from "../../tests/support/prng.ts";
import { BufferPool } from "./buffer_pool.ts";
import { OctetQueue } from "./octet_queue.ts";

Deno.test("octets leave in the order in which they came", async () => {
  await forAll(100, (prng) => {
    const queues = [new OctetQueue(), new OctetQueue()];
    const models: number[][] = [[], []];
    for (let step = 0; step < 200; step++) {
      const which = prng.below(2);
      const queue = queues[which]!;
      const model = models[which]!;
      if (prng.below(2) === 0) {
        const chunk = prng.octets(prng.below(prng.pick([10, 3_000])));
        queue.push(chunk);
        model.push(...chunk);
      } else {
        const count = prng.below(model.length + 1);
        assertEquals(Array.from(queue.peek()), model);
        queue.drop(count);
        model.splice(0, count);
      }
      assertEquals(queue.octets, model.length);
    }
    for (const queue of queues) queue.clear();
  });
});

Deno.test("a pushed chunk may be written to afterwards", () => {
  const queue = new OctetQueue();
  const chunk = Uint8Array.of(1, 2, 3);
  queue.push(chunk);
  chunk.fill(9);
  assertEquals(Array.from(queue.peek()), [1, 2, 3]);
  queue.clear();
});

Deno.test("a queue that stays half full needs no more room for it", () => {
  const queue = new OctetQueue();
  const chunk = new Uint8Array(1_000);
  queue.push(chunk);
  let capacity = 0;
  for (let i = 0; i < 1_000; i++) {
    queue.push(chunk);
    queue.drop(1_000);
    capacity = Math.max(capacity, queue.peek().buffer.byteLength);
  }
  assertEquals(capacity, 4_096);
  queue.clear();
});

Deno.test("refuses to drop what is not there", () => {
  const queue = new OctetQueue();
  assertThrows(() => queue.drop(1), RangeError, "0 are queued");
});

Deno.test("a buffer given back is used again", () => {
  const pool = new BufferPool();
  const buffer = pool.take(5_000);
  assertEquals(buffer.length, 8_192);
  pool.give(buffer);
  assertEquals(pool.octets, 8_192);
  assertEquals(pool.take(8_000) === buffer, true);
  assertEquals(pool.octets, 0);
});

Deno.test("the pool keeps a bounded number of octets and no giants", () => {
  const pool = new BufferPool();
  pool.give(pool.take(2 * 1_048_576));
  assertEquals(pool.octets, 0);
  const taken = Array.from({ length: 20 }, () => pool.take(1_048_576));
  for (const buffer of taken) pool.give(buffer);
  assertEquals(pool.octets, 8 * 1_048_576);
});
