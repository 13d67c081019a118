/**
 * Notices a `node:net` listener that has stopped accepting.
 *
 * When `accept` fails once (a process out of descriptors is enough), the
 * platform never polls that listener again and tells nobody: connections queue
 * in the kernel for ever. The kernel's queue length gives it away, so it is
 * looked at now and then, and the owner opens the port again.
 *
 * Linux only; elsewhere the queue always looks empty.
 *
 * @module
 */

import { acceptQueueLength } from "../bind/accept_queue.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";

/** How often the queue is looked at. */
export const WATCH_INTERVAL_MS = 2_000;

/** How soon it is looked at again when something was waiting. */
export const CONFIRM_MS = 250;

/**
 * How late a look may come before it proves nothing: a blocked event loop has
 * not accepted either, and is innocent.
 */
const LATE_MS = 100;

/**
 * Calls `onStuck` when connections were waiting at two looks in a row, and none
 * was accepted in between: in a flood some are always waiting.
 *
 * @param port The listener's port.
 * @param accepted How many connections it has accepted in its life.
 * @returns How to stop watching.
 */
export function watchAcceptQueue(
  port: number,
  timers: Timers,
  accepted: () => number,
  onStuck: () => void,
  queueLength: (port: number) => number = acceptQueueLength,
): () => void {
  let timer: Timer;
  let acceptedBefore = 0;
  const arm = (delayMs: number, isSuspect: boolean) => {
    const dueMs = timers.now() + delayMs;
    timer = timers.after(delayMs, () => {
      const isLate = timers.now() > dueMs + LATE_MS;
      const isWaiting = !isLate && queueLength(port) > 0;
      const isMoving = accepted() !== acceptedBefore;
      acceptedBefore = accepted();
      if (isWaiting && isSuspect && !isMoving) onStuck();
      if (isWaiting && !isSuspect) arm(CONFIRM_MS, true);
      else arm(WATCH_INTERVAL_MS, false);
    });
  };
  arm(WATCH_INTERVAL_MS, false);
  return () => timer.cancel();
}
