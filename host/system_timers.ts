/**
 * The machine's monotonic clock and timers.
 *
 * @module
 */

import type { Timers } from "../proto/sync/clock.ts";

/** The longest delay the platform can wait; longer ones would fire at once. */
const DELAY_MS_MAX = 2 ** 31 - 1;

/** {@linkcode Timers} of this process. */
export const systemTimers: Timers = {
  now: () => performance.now(),
  after(delayMs, callback) {
    const id = setTimeout(callback, Math.min(delayMs, DELAY_MS_MAX));
    return { cancel: () => clearTimeout(id) };
  },
};
