import { assertEquals, assertThrows } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import { Backoff } from "./backoff.ts";

Deno.test("the first wait is between 50 and 100 ms", () => {
  assertEquals(new Backoff({ capMs: 30_000, random: () => 0 }).nextMs(), 50);
  const last = new Backoff({ capMs: 30_000, random: () => 1 - 2 ** -32 });
  assertEquals(Math.round(last.nextMs()), 100);
});

Deno.test("waits grow by half up to the cap", () => {
  const backoff = new Backoff({ capMs: 300, random: () => 0 });
  const waits = Array.from({ length: 5 }, () => backoff.nextMs());
  assertEquals(waits, [50, 75, 112.5, 150, 150]);
});

Deno.test("waits can be held short for a while, and grow on afterwards", () => {
  const backoff = new Backoff({ capMs: 1_000, random: () => 0 });
  const held = Array.from({ length: 6 }, () => backoff.nextMs(200));
  assertEquals(held, [50, 75, 100, 100, 100, 100]);
  assertEquals([backoff.nextMs(), backoff.nextMs()], [150, 225]);
});

Deno.test("a success makes the next wait short again", () => {
  const backoff = new Backoff({ capMs: 30_000, random: () => 0 });
  for (let i = 0; i < 10; i++) backoff.nextMs();
  backoff.reset();
  assertEquals(backoff.nextMs(), 50);
});

Deno.test("no wait exceeds the cap or half of its ceiling", async () => {
  await forAll(100, (prng) => {
    const capMs = 1 + prng.below(5_000);
    const backoff = new Backoff({
      capMs,
      random: () => prng.below(2 ** 32) / 2 ** 32,
    });
    for (let i = 0; i < 30; i++) {
      const waitMs = backoff.nextMs();
      assertEquals(waitMs <= capMs && waitMs >= Math.min(50, capMs / 2), true);
    }
  });
});

Deno.test("refuses a cap that is no time", () => {
  for (const capMs of [0, -1, NaN]) {
    assertThrows(() => new Backoff({ capMs, random: () => 0 }), RangeError);
  }
});
