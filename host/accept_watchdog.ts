/**
 * Notices a `node:net` listener that has stopped accepting.
 *
 * When `accept` fails once (a process out of descriptors is enough), the
 * platform never polls that listener again and tells nobody: connections queue
 * in the kernel for ever. The kernel's queue length gives it away, so it is
 * looked at now and then, and the owner opens the port again.
 *
 * Linux only; elsewhere there is nothing to look at.
 *
 * @module
 */

import type { Timer, Timers } from "../proto/sync/clock.ts";

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
 * Calls `onStuck` when connections were waiting at two looks in a row.
 *
 * @param port The listener's port.
 * @returns How to stop watching.
 */
export function watchAcceptQueue(
  port: number,
  timers: Timers,
  onStuck: () => void,
  queueLength: (port: number) => number = kernelQueueLength,
): () => void {
  let timer: Timer;
  const arm = (delayMs: number, isSuspect: boolean) => {
    const dueMs = timers.now() + delayMs;
    timer = timers.after(delayMs, () => {
      const isLate = timers.now() > dueMs + LATE_MS;
      const isWaiting = !isLate && queueLength(port) > 0;
      if (isWaiting && isSuspect) onStuck();
      if (isWaiting && !isSuspect) arm(CONFIRM_MS, true);
      else arm(WATCH_INTERVAL_MS, false);
    });
  };
  arm(WATCH_INTERVAL_MS, false);
  return () => timer.cancel();
}

/** Connections that the kernel has completed and nobody has accepted. */
function kernelQueueLength(port: number): number {
  if (Deno.build.os !== "linux") return 0;
  return ["/proc/self/net/tcp", "/proc/self/net/tcp6"]
    .reduce((sum, path) => sum + queueIn(path, port), 0);
}

function queueIn(path: string, port: number): number {
  let table: string;
  try {
    table = Deno.readTextFileSync(path);
  } catch {
    // No descriptor left, no IPv6, or no permission: nothing is known.
    return 0;
  }
  return acceptQueueLength(table, port);
}

/**
 * Reads `/proc/net/tcp`: of a socket in state LISTEN (0A), the receive queue is
 * the number of connections waiting (proc(5)).
 */
export function acceptQueueLength(table: string, port: number): number {
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  const line = new RegExp(
    `^ *\\d+: [0-9A-F]+:${hex} [0-9A-F]+:0000 0A [0-9A-F]+:([0-9A-F]+) `,
    "gm",
  );
  let sum = 0;
  for (const match of table.matchAll(line)) sum += parseInt(match[1]!, 16);
  return sum;
}
