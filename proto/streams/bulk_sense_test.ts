import { assert, assertEquals } from "@std/assert";
import { Prng } from "../../tests/support/memory/prng.ts";
import { BULK_BYTES, BulkSense, LEAK_BYTES_PER_S } from "./bulk_sense.ts";

Deno.test("a stream that moves fast is bulk, one that moves as much slowly is not", () => {
  const sense = new BulkSense<string>();
  for (let nowMs = 0; nowMs < 10_000; nowMs += 250) {
    sense.moved("slow", LEAK_BYTES_PER_S / 4, nowMs);
  }
  assertEquals(sense.count(10_000), 0);
  sense.moved("fast", BULK_BYTES / 2, 10_000);
  assertEquals(sense.count(10_000), 0);
  sense.moved("fast", BULK_BYTES / 2, 10_000);
  assertEquals(sense.count(10_000), 1);
});

Deno.test("whatever it moved, it is bulk no longer two seconds after its last byte", () => {
  const sense = new BulkSense<string>();
  for (let i = 0; i < 100; i++) sense.moved("big", 16 * BULK_BYTES, i);
  assertEquals(sense.count(99), 1);
  assertEquals(sense.count(2_000), 1);
  assertEquals(sense.count(2_100), 0);
});

Deno.test("a stream that is over does not count", () => {
  const sense = new BulkSense<string>();
  sense.moved("a", 2 * BULK_BYTES, 0);
  sense.moved("b", 2 * BULK_BYTES, 0);
  sense.forget("a");
  assertEquals(sense.count(0), 1);
});

Deno.test("counting changes nothing, whatever the order of events", () => {
  for (let seed = 1; seed <= 50; seed++) {
    const prng = new Prng(seed);
    const [looked, unlooked] = [
      new BulkSense<number>(),
      new BulkSense<number>(),
    ];
    let nowMs = 0;
    for (let step = 0; step < 200; step++) {
      nowMs += prng.below(400);
      const [stream, bytes] = [prng.below(5), prng.below(BULK_BYTES)];
      looked.moved(stream, bytes, nowMs);
      unlooked.moved(stream, bytes, nowMs);
      looked.count(nowMs);
    }
    assertEquals(looked.count(nowMs), unlooked.count(nowMs), `seed ${seed}`);
    assert(looked.count(nowMs) <= 5);
    assertEquals(looked.count(nowMs + 3_000), 0);
  }
});
