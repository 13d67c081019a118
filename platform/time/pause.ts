/**
 * Waiting that can be called off.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";

/** Settles after `durationMs`, or at once when `signal` is aborted. */
export function pause(
  timers: Timers,
  durationMs: number,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => {
      timer.cancel();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = timers.after(durationMs, done);
    signal.addEventListener("abort", done);
  });
}
