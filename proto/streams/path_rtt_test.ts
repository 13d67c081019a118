import { assertEquals } from "@std/assert";
import { MINIMUM_LIFE_MS, PathRtt } from "./path_rtt.ts";

Deno.test("one late answer is a lost packet, three are a queue", () => {
  const rtt = new PathRtt();
  rtt.sample(50, 0);
  for (const [ms, isInflated] of [[200, false], [200, false], [200, true]]) {
    rtt.sample(Number(ms), 0);
    assertEquals(rtt.isInflated, isInflated);
  }
  rtt.sample(50, 0);
  assertEquals(rtt.isInflated, false);
});

Deno.test("what takes three milliseconds on loopback is no queue", () => {
  const rtt = new PathRtt();
  rtt.sample(0.1, 0);
  for (let i = 0; i < 5; i++) rtt.sample(9, i);
  assertEquals(rtt.isInflated, false);
});

Deno.test("the minimum is doubted when nothing came near it for long", () => {
  const rtt = new PathRtt();
  rtt.sample(50, 0);
  rtt.sample(100, MINIMUM_LIFE_MS);
  assertEquals(rtt.isMinimumOld(MINIMUM_LIFE_MS), false);
  assertEquals(rtt.isMinimumOld(MINIMUM_LIFE_MS + 1), true);
  rtt.sample(52, MINIMUM_LIFE_MS + 1);
  assertEquals(rtt.isMinimumOld(MINIMUM_LIFE_MS + 1), false);
  assertEquals(rtt.minMs, 50);
  rtt.forgetMinimum();
  rtt.sample(80, MINIMUM_LIFE_MS + 2);
  assertEquals(rtt.minMs, 80);
});
