/**
 * How many descriptors this process may have (getrlimit(2)).
 *
 * @module
 */

import { openLibc } from "./libc.ts";

/** Linux's number for it. */
const RLIMIT_NOFILE = 7;

/** `undefined` without a C library. */
export function descriptorLimit(): number | undefined {
  // struct rlimit: the soft limit, which is what holds, and the hard one.
  const limits = new BigUint64Array(2);
  const answer = openLibc()?.getrlimit(RLIMIT_NOFILE, limits);
  return answer === 0 ? Number(limits[0]) : undefined;
}
