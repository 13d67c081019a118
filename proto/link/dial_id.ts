/**
 * The `random` of a DIAL_REQ: the key that ties a DIAL_RSP to its DIAL_REQ.
 *
 * A Konnectivity server keeps the pending dials of all its frontends in one map
 * under this number alone, so it has to be unguessable and uniform wherever a
 * Go peer may be listening. Where it comes from is handed in.
 *
 * @module
 */

import type { Int64 } from "../packets/packet.ts";

/** Fills `bytes` with random ones, such as `crypto.getRandomValues`. */
export type Randomness = (bytes: Uint8Array<ArrayBuffer>) => unknown;

/** A fresh dial id, uniform in [0, 2^63) as Go's `rand.Int63()` is. */
export function randomDialId(randomness: Randomness): Int64 {
  const bytes = new Uint8Array(8);
  randomness(bytes);
  const value = new DataView(bytes.buffer).getBigUint64(0) >> 1n;
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}
