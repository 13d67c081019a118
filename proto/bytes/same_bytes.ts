/**
 * Comparing bytes.
 *
 * @module
 */

/** Whether two arrays hold the same bytes. Not for secrets: it takes its time. */
export function sameBytes(one: Uint8Array, other: Uint8Array): boolean {
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at++) {
    if (one[at] !== other[at]) return false;
  }
  return true;
}
