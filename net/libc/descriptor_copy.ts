/**
 * Second descriptors for what is open, which programs that are started do not
 * have: a child with a copy of a listening socket keeps it open, and whoever
 * wants the address finds it taken.
 *
 * @module
 */

import { openLibc } from "./libc.ts";

/** From `fcntl.h`: closed on exec. */
const F_DUPFD_CLOEXEC = 1030;

/** A copy of `descriptor`, for whom there is a C library; negative: none. */
export function copyDescriptor(descriptor: number): number {
  return openLibc()!.fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
}

/** Closes descriptors of ours. */
export function closeAll(descriptors: readonly number[]): void {
  for (const one of descriptors) openLibc()?.close(one);
}
