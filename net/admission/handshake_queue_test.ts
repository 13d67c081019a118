import { assert, assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  HANDSHAKE_PACE_MS,
  HandshakeQueue,
  HANDSHAKES_WAIT_MS_MAX,
  HANDSHAKES_WAITING_MAX,
} from "./handshake_queue.ts";

Deno.test("handshakes begin in order, each in its turn, but those that are gone", () => {
  const timers = new FakeTimers();
  const queue = new HandshakeQueue(timers);
  const begun: number[] = [];
  for (let at = 0; at < 5; at++) {
    queue.add({ isGone: () => at === 2, begin: () => void begun.push(at) });
  }
  assertEquals(begun, [0]);
  for (let turn = 0; turn < 3; turn++) timers.advance(HANDSHAKE_PACE_MS);
  assertEquals(begun, [0, 1, 3, 4]);
});

Deno.test("who accepts waits while many handshakes do, and goes on in time", () => {
  const timers = new FakeTimers();
  const queue = new HandshakeQueue(timers);
  let gone = 0;
  let told = 0;
  const isGone = () => gone > 0 && gone-- > 0;
  for (let at = 0; at <= HANDSHAKES_WAITING_MAX; at++) {
    assertEquals(queue.isFull, false);
    queue.add({ isGone, begin() {} });
  }
  assertEquals(queue.isFull, true);
  queue.whenRoom(() => void told++);
  timers.advance(HANDSHAKE_PACE_MS);
  assertEquals([queue.isFull, told], [false, 0]);
  // All the others hang up.
  gone = HANDSHAKES_WAITING_MAX;
  timers.advance(HANDSHAKE_PACE_MS);
  assertEquals(told, 1);
  queue.add({ isGone, begin() {} });
  timers.advance(HANDSHAKE_PACE_MS);
  assertEquals(told, 1);
});

Deno.test("on a slow machine fewer wait, so that none waits too long", () => {
  let nowMs = 0;
  let next = () => {};
  const queue = new HandshakeQueue({
    now: () => nowMs,
    after: (_delayMs, act) => {
      next = act;
      return { cancel() {} };
    },
  });
  const one = { isGone: () => false, begin() {} };
  for (let at = 0; at < HANDSHAKES_WAITING_MAX / 2; at++) queue.add(one);
  assertEquals(queue.isFull, false);
  for (let turn = 0; turn < 100; turn++) {
    nowMs += 10;
    next();
  }
  // Each of those that wait now would wait for 10 ms more than the one before.
  assertEquals(queue.isFull, true);
  let told = false;
  queue.whenRoom(() => told = true);
  let turns = 0;
  for (; !told; turns++) {
    nowMs += 10;
    next();
  }
  const left = HANDSHAKES_WAITING_MAX / 2 - 100 - turns;
  assert(left * 10 <= HANDSHAKES_WAIT_MS_MAX, `${left} are left`);
});
