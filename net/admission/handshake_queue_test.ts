import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  HANDSHAKE_PACE_MS,
  HandshakeQueue,
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
