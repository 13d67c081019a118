/**
 * Whether standard error takes more without making this process wait: a pipe
 * whose reader stands still does not, nor does a terminal that was stopped.
 *
 * @module
 */

import { openLibc } from "./libc.ts";

/** From `poll.h`. */
const POLLOUT = 4;

/** `struct pollfd` of descriptor 2; its answer is in the last two bytes. */
const POLLED = new Int16Array(new Int32Array([2, POLLOUT]).buffer);

/**
 * Whether the kernel has room for `PIPE_BUF` bytes, looked at for up to so many
 * milliseconds. Without a C library nobody knows, and a write may wait.
 */
export function standardErrorIsReady(timeoutMs: number): boolean {
  const library = openLibc();
  if (library === undefined) return true;
  // An error is no reason to keep lines: writing tells what it is.
  return library.poll(POLLED, 1n, timeoutMs) !== 0;
}
