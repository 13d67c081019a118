/**
 * Finds out that this process did not run for a while: the machine slept, its
 * virtual machine was held, or somebody stopped the process. Peers have waited
 * meanwhile, and may have given up.
 *
 * Two clocks are compared with what was expected of them. The monotonic one goes on
 * while a process is stopped; the wall clock goes on, or is put forward, when a
 * machine sleeps. That people set the wall clock costs a look that was not needed.
 *
 * @module
 */

import { noteLateTimer } from "./loop_lag.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";

/** How often it is looked. */
export const LAPSE_LOOK_MS = 500;

/** A busy event loop is not late by so much. */
export const LAPSE_MS = 2_000;

/** See the module description. */
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
