/**
 * Descriptors of this process: copies, their limit, and whether there are any left
 * for a use: listeners of services leave some for callers and targets, these
 * for links, and those for health and administration, so that a process that is
 * full can still report why.
 *
 * The kernel gives out the lowest descriptor that is free, so the number of a
 * new one says how many are in use at least.
 *
 * @module
 */

import { openLibc } from "./libc.ts";
import { countProcFolder } from "./proc_files.ts";

/** What a descriptor is for. */
export type DescriptorUse = "listener" | "caller" | "link" | "administration";

/**
 * Share of all descriptors that callers and targets leave free, within bounds.
 */
const CALLERS_LEAVE = { share: 1 / 8, min: 12, max: 1_024 } as const;

/** Share of those that links leave free. */
const LINKS_LEAVE_SHARE = 1 / 2;

/** The listeners of services leave so many times that: to their callers. */
const LISTENERS_LEAVE = 2;

/** How many processes have listeners of which their parent holds a copy. */
let holders = 1;

/** This process is one of `count` workers: their parent must have room, too. */
export function shareDescriptors(count: number): void {
  holders = count;
}

/** A caller takes no more before the next one looks: a socket and a target. */
const PER_ASK_MAX = 4;

/** The limit may be lowered meanwhile (prlimit(1)). */
const UNASKED_MAX = 256;

/** So few that the operator should know of it at the start. */
export const SMALL_LIMIT = 1_024;

/** What `use` leaves to others of `limit` descriptors. */
export function descriptorsLeft(use: DescriptorUse, limit: number): number {
  const { share, min, max } = CALLERS_LEAVE;
  const callers = Math.min(max, Math.max(min, Math.floor(limit * share)));
  if (use === "listener") {
    return limit - Math.floor((limit - LISTENERS_LEAVE * callers) / holders);
  }
  if (use === "caller") return callers;
  return use === "link" ? Math.floor(callers * LINKS_LEAVE_SHARE) : 0;
}

/** How many may be taken before they are counted again. */
let unchecked = 0;

/** Whether `use` may have another descriptor, or keep the one it just got. */
export function mayTakeDescriptor(use: DescriptorUse): boolean {
  if (use === "administration") return true;
  // Listeners are rarely opened, and leave more than what was counted.
  if (use !== "listener" && unchecked-- > 0) return true;
  const limit = descriptorLimit();
  const free = freeDescriptors(limit);
  if (limit === undefined || free === undefined) return true;
  const toSpare = free - descriptorsLeft("caller", limit);
  unchecked = Math.min(
    UNASKED_MAX,
    Math.max(0, Math.floor(toSpare / PER_ASK_MAX)),
  );
  return free > descriptorsLeft(use, limit);
}

/** @returns `undefined` when it is unknown. */
function freeDescriptors(limit: number | undefined): number | undefined {
  const library = openLibc();
  if (library === undefined || limit === undefined) return undefined;
  const probe = library.eventfd(0, EFD_CLOEXEC);
  if (probe < 0) return 0;
  library.close(probe);
  return limit - probe;
}

const EFD_CLOEXEC = 0x80000;

let spare: number | undefined;

/**
 * Runs `refuse` although no descriptor is left: one is kept in reserve.
 * `refuse` must close the connection that it accepts, so that the reserve is
 * there for the next one; leaving the client in the kernel's queue would be
 * worse.
 */
export function withSpareDescriptor<Result>(refuse: () => Result): Result {
  const library = openLibc();
  if (library === undefined) return refuse();
  if (spare !== undefined && spare >= 0) library.close(spare);
  try {
    return refuse();
  } finally {
    spare = library.eventfd(0, EFD_CLOEXEC);
  }
}

/** Takes the one that is kept, while there are any. */
export function keepSpareDescriptor(): void {
  if (spare === undefined || spare < 0) {
    spare = openLibc()?.eventfd(0, EFD_CLOEXEC);
  }
}

/** The warning at the start, if there are few descriptors. */
export function smallLimitWarning(): string | undefined {
  const limit = descriptorLimit();
  if (limit === undefined || limit >= SMALL_LIMIT) return undefined;
  return `This process may have only ${limit} descriptors, one for each ` +
    `connection; raise "ulimit -n" (LimitNOFILE in systemd)`;
}

/** From `fcntl.h`: closed on exec. */
const F_DUPFD_CLOEXEC = 1030;

/** A copy of `descriptor`, if there is a C library; negative: none. */
export function copyDescriptor(descriptor: number): number {
  return openLibc()!.fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
}

/** Closes descriptors of ours. */
export function closeAll(descriptors: readonly number[]): void {
  for (const one of descriptors) openLibc()?.close(one);
}

/** How many this process has; `undefined` where the system does not say it. */
export function openDescriptors(): number | undefined {
  const count = countProcFolder("/proc/self/fd");
  // One of them was for the look.
  return count === undefined ? undefined : count - 1;
}

/** Linux's number for it. */
const RLIMIT_NOFILE = 7;

/** `undefined` without a C library. */
export function descriptorLimit(): number | undefined {
  // struct rlimit: the soft limit, which is what holds, and the hard one.
  const limits = new BigUint64Array(2);
  const answer = openLibc()?.getrlimit(RLIMIT_NOFILE, limits);
  return answer === 0 ? Number(limits[0]) : undefined;
}

/** From `poll.h`. */
const POLLOUT = 4;

/** `struct pollfd` of descriptor 2; its answer is in the last two bytes. */
const POLLED = new Int16Array(new Int32Array([2, POLLOUT]).buffer);

/**
 * Whether the kernel has room for `PIPE_BUF` bytes, checked for up to this many
 * milliseconds. Without a C library that is unknown, and a write may block.
 */
export function standardErrorIsReady(timeoutMs: number): boolean {
  const library = openLibc();
  if (library === undefined) return true;
  // An error is no reason to keep lines: the write will report it.
  return library.poll(POLLED, 1n, timeoutMs) !== 0;
}
