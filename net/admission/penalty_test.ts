import { assert, assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { Prng } from "../../tests/support/memory/prng.ts";
import {
  FAULTS_FORGOTTEN_PER_SECOND,
  FAULTS_KEPT_MAX,
  FAULTS_MAX,
  Penalty,
  PENALTY_WAITING_MAX,
  PenaltyQueue,
  TRY_PACE_MS,
} from "./penalty.ts";

/** How long after its last fault a source is what it was, at the most. */
const QUIET_MS = 1_000 * (FAULTS_KEPT_MAX - FAULTS_MAX) /
  FAULTS_FORGOTTEN_PER_SECOND;

function penalized(nowMs: number): Penalty {
  const penalty = new Penalty(nowMs);
  for (let index = 0; index < 100; index++) penalty.fault(nowMs);
  return penalty;
}

Deno.test("a handful of faults costs nothing, the next one slows the source down", () => {
  const penalty = new Penalty(0);
  for (let index = 1; index <= FAULTS_MAX; index++) {
    assertEquals([penalty.fault(0), penalty.takeTry(0)], [false, true]);
  }
  assertEquals([penalty.fault(0), penalty.takeTry(0)], [true, false]);
  assertEquals(penalty.fault(0), false, "told once");
});

Deno.test("one try a second is let in, whatever else happens", () => {
  const penalty = penalized(0);
  let tries = 0;
  for (let nowMs = 1; nowMs <= 60_000; nowMs++) {
    if (!penalty.takeTry(nowMs)) continue;
    tries++;
    penalty.fault(nowMs);
  }
  assertEquals(tries, 60_000 / TRY_PACE_MS);
});

Deno.test("however many faults there were, they are forgotten in bounded time", () => {
  const penalty = penalized(0);
  assertEquals(penalty.isOn(QUIET_MS - 1), true);
  assertEquals(penalty.isOn(QUIET_MS + 1), false);
});

Deno.test("who shows who it is lets in the next one at once, who breaks rules then does not", () => {
  const penalty = penalized(0);
  for (let index = 0; index < 200; index++) {
    assertEquals(penalty.takeTry(TRY_PACE_MS), true);
    assertEquals(penalty.takeTry(TRY_PACE_MS), false);
    penalty.ease(TRY_PACE_MS);
  }
  penalty.fault(TRY_PACE_MS);
  assertEquals(penalty.takeTry(2 * TRY_PACE_MS - 1), false);
  assertEquals(penalty.takeTry(2 * TRY_PACE_MS), true);
});

/** A queue, and who was let in. */
function queueOf(timers: FakeTimers, seed = 7) {
  const came: string[] = [];
  const prng = new Prng(seed);
  const queue = new PenaltyQueue<string>({
    timers,
    random: () => prng.below(1e6) / 1e6,
    admit: (visitor) => void came.push(visitor),
  });
  return { came, queue };
}

Deno.test("two hundred agents behind a source that is slowed down come in one behind the other", () => {
  const timers = new FakeTimers();
  const penalty = penalized(timers.now());
  const { came, queue } = queueOf(timers);
  let arrived = 0;
  for (let ms = 0; ms < 10_000 && came.length < 200; ms += 10) {
    // Who finds no place comes again a little later.
    while (arrived < 200 && queue.wait(penalty, `agent ${arrived}`)) arrived++;
    timers.advance(10);
    penalty.ease(timers.now());
  }
  assertEquals(new Set(came).size, 200);
  assert(timers.now() < 5_000, `${timers.now()} ms`);
});

Deno.test("an honest peer beside an attacker who fills the room is let in by lot", () => {
  const tookMs = Array.from({ length: 50 }, (_, seed) => {
    const timers = new FakeTimers();
    const penalty = penalized(timers.now());
    const { came, queue } = queueOf(timers, seed + 1);
    queue.wait(penalty, "honest");
    while (!came.includes("honest")) {
      while (queue.wait(penalty, "attacker"));
      timers.advance(TRY_PACE_MS);
      if (came.at(-1) === "attacker") penalty.fault(timers.now());
      assert(timers.now() < 600_000);
    }
    return timers.now();
  });
  const meanMs = tookMs.reduce((sum, ms) => sum + ms) / tookMs.length;
  // One of 32 tries is its own.
  assert(meanMs < 2 * PENALTY_WAITING_MAX * TRY_PACE_MS, `${meanMs} ms`);
});

Deno.test("a room is full at its limit, and who leaves makes a place", () => {
  const timers = new FakeTimers();
  const penalty = penalized(timers.now());
  const { came, queue } = queueOf(timers);
  for (let index = 0; index < PENALTY_WAITING_MAX; index++) {
    assertEquals(queue.wait(penalty, `${index}`), true);
  }
  assertEquals([queue.isFull(penalty), queue.wait(penalty, "late")], [
    true,
    false,
  ]);
  assertEquals(queue.isFull(penalized(0)), false, "each source has its own");
  for (let index = 0; index < PENALTY_WAITING_MAX; index++) {
    queue.leave(penalty, `${index}`);
  }
  timers.advance(2 * TRY_PACE_MS);
  assertEquals([came, timers.pendingCount], [[], 0]);
});

Deno.test("when its faults are forgotten all who wait come in", () => {
  const timers = new FakeTimers();
  const penalty = new Penalty(timers.now());
  for (let index = 0; index <= FAULTS_MAX; index++) penalty.fault(timers.now());
  const { came, queue } = queueOf(timers);
  for (let index = 0; index < 20; index++) queue.wait(penalty, `${index}`);
  for (let index = 0; index < 5; index++) timers.advance(TRY_PACE_MS);
  assertEquals(came.length, 20);
});
