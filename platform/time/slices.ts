/**
 * Work that is done a few milliseconds at a time, so that links and whatever else
 * is to be done have their turn in between.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";

/** How long the event loop waits for a slice, milliseconds. */
export const SLICE_MS = 5;

/** Work in steps; each is shorter than a slice. */
export interface SlicedWork {
  hasMore(): boolean;
  /** @returns Whether there was anything to do. */
  step(): boolean;
  /** A slice has ended without work left. */
  done?(): void;
}

/** See the module description. */
export class Slices {
  #timer: Timer | undefined;
  #isRunning = false;

  constructor(
    private readonly timers: Timers,
    private readonly work: SlicedWork,
  ) {}

  /** There is more work: a slice begins at once, unless one is due or runs. */
  begin(): void {
    if (this.#timer === undefined && !this.#isRunning) this.#run();
  }

  /** There is more work, for a later slice: the running one is used up. */
  beginLater(): void {
    if (!this.#isRunning) this.#wait();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #run(): void {
    const untilMs = this.timers.now() + SLICE_MS;
    this.#isRunning = true;
    try {
      while (this.work.step()) if (this.timers.now() >= untilMs) break;
    } finally {
      this.#isRunning = false;
      // Also after an error: the rest of the work is not to blame.
      if (this.work.hasMore()) this.#wait();
    }
    if (!this.work.hasMore()) this.work.done?.();
  }

  #wait(): void {
    this.#timer ??= this.timers.after(0, () => {
      this.#timer = undefined;
      this.#run();
    });
  }
}
