import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { FIRST_HOLD_MS, FirstHold } from "./first_hold.ts";

function setUp() {
  const timers = new FakeTimers();
  const reported = { times: 0 };
  const hold = new FirstHold(timers, { onHoldOver: () => reported.times++ });
  return { timers, reported, hold };
}

Deno.test("what a target says at once waits, and no longer than the hold", () => {
  const { timers, reported, hold } = setUp();
  timers.advance(1);
  assertEquals([hold.mustWait(), hold.mustWait()], [true, true]);
  assertEquals(timers.pendingCount, 1);
  timers.advance(FIRST_HOLD_MS - 2);
  assertEquals(reported.times, 0);
  timers.advance(1);
  assertEquals([reported.times, timers.pendingCount], [1, 0]);
});

Deno.test("what a target says later does not wait, and nobody set a timer", () => {
  const { timers, reported, hold } = setUp();
  assertEquals(timers.pendingCount, 0);
  timers.advance(FIRST_HOLD_MS);
  assertEquals([hold.mustWait(), reported.times, timers.pendingCount], [
    false,
    0,
    0,
  ]);
});

Deno.test("it counts from the answer", () => {
  const { timers, hold } = setUp();
  timers.advance(FIRST_HOLD_MS);
  hold.restart();
  assertEquals(hold.mustWait(), true);
});

Deno.test("a caller that speaks ends it, and one that has gone does too", () => {
  const spoken = setUp();
  spoken.hold.mustWait();
  spoken.hold.release();
  assertEquals([spoken.reported.times, spoken.timers.pendingCount], [1, 0]);
  const gone = setUp();
  gone.hold.mustWait();
  gone.hold.cancel();
  assertEquals([gone.reported.times, gone.timers.pendingCount], [0, 0]);
});
