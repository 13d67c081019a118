/**
 * How late timers fire because the process was busy: one event loop serves all
 * connections, so a second here delays each of them by a second.
 *
 * There is one loop in a process, and so one figure. It also notices that the
 * process did not run at all, because the machine slept.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";

/**
 * The worst of the present and of the last such span is shown: a scrape every
 * fifteen seconds or every minute sees each stall once at least.
 */
const SPAN_MS = 60_000;

let worstMs = 0;
let worstBeforeMs = 0;
let spanEndsMs = 0;

/** Notes that a timer came so late. @param nowMs By a clock that only grows. */
export function noteLateTimer(lateMs: number, nowMs: number): void {
  if (nowMs >= spanEndsMs) {
    worstBeforeMs = nowMs < spanEndsMs + SPAN_MS ? worstMs : 0;
    worstMs = 0;
    spanEndsMs = nowMs + SPAN_MS;
  }
  worstMs = Math.max(worstMs, lateMs);
}

/**
 * The highest lag of the last one to two minutes; 0 when it is not measured.
 */
export function loopLagMs(): number {
  return Math.max(worstMs, worstBeforeMs);
}

/** How often it is looked. */
export const LAPSE_LOOK_MS = 500;

/** A busy event loop is not late by so much. */
export const LAPSE_MS = 2_000;

/**
 * Finds out that this process did not run for a while: the machine slept, its
 * virtual machine was paused, or the process was stopped. Peers may have given
 * up meanwhile.
 *
 * Two clocks are compared with their expected values. The monotonic one goes on
 * while a process is stopped; the wall clock goes on, or is put forward, when a
 * machine sleeps. A person who sets the wall clock only causes an unneeded
 * check.
 */
export class LapseWatch {
  #timer: Timer | undefined;

  /** @param onLapse Gets how long it was, as far as that is known. */
  constructor(
    private readonly timers: Timers,
    private readonly wallClock: () => number,
    private readonly onLapse: (ms: number) => void,
  ) {
    this.#wait();
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #wait(): void {
    const [atMs, wallMs] = [this.timers.now(), this.wallClock()];
    this.#timer = this.timers.after(LAPSE_LOOK_MS, () => {
      const ranMs = this.timers.now() - atMs;
      const passedMs = this.wallClock() - wallMs;
      this.#wait();
      noteLateTimer(Math.max(0, ranMs - LAPSE_LOOK_MS), this.timers.now());
      const lapseMs = Math.max(ranMs, passedMs) - LAPSE_LOOK_MS;
      if (lapseMs >= LAPSE_MS) this.onLapse(lapseMs);
    });
  }
}
