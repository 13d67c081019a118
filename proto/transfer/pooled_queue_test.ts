import { assertEquals, assertThrows } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import { BufferPool } from "../bytes/buffer_pool.ts";
import { PooledQueue } from "./pooled_queue.ts";

Deno.test("bytes leave in the order in which they came", async () => {
  await forAll(30, (prng) => {
    // Two queues on one pool: a block that one still reads must not be lent to
    // the other.
    const pool = new BufferPool();
    const queues = [new PooledQueue(pool), new PooledQueue(pool)];
    const models = ["", ""]; // in hex
    for (let step = 0; step < 200; step++) {
      const which = prng.below(2);
      const queue = queues[which]!;
      const bytes = models[which]!.length / 2;
      if (prng.below(2) === 0) {
        const chunk = prng.bytes(prng.below(prng.pick([10, 3_000, 20_000])));
        queue.push(chunk);
        models[which] += chunk.toHex();
      } else {
        const run = queue.peek();
        assertEquals(run.length > 0, bytes > 0);
        assertEquals(models[which]!.startsWith(run.toHex()), true);
        const count = prng.below(prng.pick([run.length, bytes]) + 1);
        queue.drop(count);
        models[which] = models[which]!.slice(2 * count);
      }
      assertEquals(queue.bytes, models[which]!.length / 2);
    }
  });
});

Deno.test("a pushed chunk may be written to afterwards", () => {
  const queue = new PooledQueue();
  const chunk = Uint8Array.of(1, 2, 3);
  queue.push(chunk);
  chunk.fill(9);
  assertEquals(Array.from(queue.peek()), [1, 2, 3]);
  queue.clear();
});

Deno.test("every block is given back, and an empty queue owns none", () => {
  const pool = new CountingPool();
  const queue = new PooledQueue(pool);
  for (const empty of [() => queue.clear(), () => queue.drop(queue.bytes)]) {
    for (const bytes of [1, 700, 5_000, 300_000]) {
      queue.push(new Uint8Array(bytes));
    }
    queue.drop(200_000);
    empty();
    assertEquals([queue.bytes, queue.peek().length, pool.lent], [0, 0, 0]);
  }
});

Deno.test("a queue that stays half full needs no more blocks for it", () => {
  const pool = new CountingPool();
  const queue = new PooledQueue(pool);
  const chunk = new Uint8Array(1_000);
  queue.push(chunk);
  for (let i = 0; i < 1_000; i++) {
    queue.push(chunk);
    queue.drop(1_000);
    assertEquals(pool.lent <= 2, true);
  }
});

Deno.test("a long queue of small chunks is made of large blocks", () => {
  const pool = new CountingPool();
  const queue = new PooledQueue(pool);
  const chunk = new Uint8Array(100);
  for (let i = 0; i < 10_000; i++) queue.push(chunk);
  assertEquals(pool.lent < 15, true);
  queue.clear();
});

Deno.test("refuses to drop what is not there", () => {
  const queue = new PooledQueue();
  assertThrows(() => queue.drop(1), RangeError, "0 are queued");
});

/** Counts the buffers that are out. */
class CountingPool extends BufferPool {
  lent = 0;

  override acquire(bytesMin: number): Uint8Array<ArrayBuffer> {
    this.lent++;
    return super.acquire(bytesMin);
  }

  override release(buffer: Uint8Array<ArrayBuffer>): void {
    this.lent--;
    super.release(buffer);
  }
}
