import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { LiveConduits } from "../../platform/conduits/live_conduits.ts";
import {
  HISTORY_SAMPLES_MAX,
  HISTORY_STEP_MS,
  TrafficHistory,
} from "./traffic_history.ts";

const START_MS = Date.parse("2026-11-22T10:00:00Z");

function rig() {
  const timers = new FakeTimers();
  const conduits = new LiveConduits(timers);
  const history = new TrafficHistory(
    { timers, conduits, pendingDials: () => 0 },
    () => START_MS + timers.now(),
  );
  return { timers, conduits, history };
}

Deno.test("an hour is kept, and no more, at ten seconds each", () => {
  const { timers, history } = rig();
  assertEquals(history.answer().samples, []);
  for (let step = 0; step < HISTORY_SAMPLES_MAX + 5; step++) {
    timers.advance(HISTORY_STEP_MS);
  }
  const { stepMs, samples } = history.answer();
  assertEquals([stepMs, samples.length], [10_000, HISTORY_SAMPLES_MAX]);
  const times = samples.map(({ at }) => Date.parse(at));
  assertEquals(times[0], START_MS + 6 * HISTORY_STEP_MS);
  assertEquals(times.at(-1)! - times[0]!, 3_590_000);
  const late = history.answer(times.at(-1)! - 60_000);
  assertEquals(late.samples.length, 7);
  history.stop();
  assertEquals(timers.pendingCount, 0);
});

Deno.test("a sample has what failed and how long dials took since the last", () => {
  const { timers, conduits, history } = rig();
  conduits.dialFailed();
  conduits.dialFailed();
  conduits.dialTimes.add(timers.now() + 1, 900);
  timers.advance(HISTORY_STEP_MS);
  conduits.dialFailed();
  timers.advance(HISTORY_STEP_MS);
  const [first, second] = history.answer().samples;
  assertEquals([first!.failedDials, first!.dialP99Ms], [2, 900]);
  assertEquals([second!.failedDials, second!.dialP99Ms], [1, undefined]);
  assertEquals(second!.at, "2026-11-22T10:00:20.000Z");
  history.stop();
});
