import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { Arrivals, READY_ARRIVAL_MS, SERVED_MS } from "./arrivals.ts";

/** Agents come at these times. @returns After how many ms nobody waits. */
async function waitedMs(
  wanted: number,
  comesMs: readonly number[],
  isServed: boolean,
): Promise<number> {
  const timers = new FakeTimers();
  const startMs = timers.now();
  let agents = 0;
  let endMs: number | undefined;
  const arrivals = new Arrivals(timers, () => agents);
  for (const atMs of comesMs) {
    timers.after(atMs, () => {
      agents++;
      arrivals.changed();
    });
  }
  const wait = arrivals.until(wanted, isServed)
    .then(() => endMs = timers.now());
  while (endMs === undefined && timers.now() < startMs + 2 * SERVED_MS) {
    timers.advance(20);
    // Waits settle some microtasks later.
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  }
  await wait;
  return endMs! - startMs;
}

Deno.test("while another process serves, its successor waits for the first agent for long", async () => {
  assertEquals(await waitedMs(1, [0], true), 20);
  assertEquals(await waitedMs(2, [12_000, 16_000], true), 16_000);
  assertEquals(await waitedMs(1, [], true), SERVED_MS);
});

Deno.test("while nobody serves, callers wait for agents for a short time", async () => {
  assertEquals(await waitedMs(1, [12_000], false), READY_ARRIVAL_MS);
  assertEquals(await waitedMs(0, [], false), 20);
});

Deno.test("those that do not come are not waited for as long as the first", async () => {
  assertEquals(
    await waitedMs(3, [8_000, 9_000], true),
    9_000 + READY_ARRIVAL_MS,
  );
  const slow = Array.from({ length: 20 }, (_, index) => 4_000 * (index + 1));
  assertEquals(await waitedMs(20, slow, true), SERVED_MS);
});
