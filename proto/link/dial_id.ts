/**
 * The `random` of a DIAL_REQ: the key that ties a DIAL_RSP to its DIAL_REQ.
 *
 * A Konnectivity server keeps the pending dials of all its frontends in one map
 * under this number alone, so it has to be unguessable and uniform wherever a
 * Go peer may be listening. Where it comes from is handed in.
 *
 * It is the connection's id at the same time: each hop sends on what it got, and
 * Go peers write it into their logs, as `dialID`.
 *
 * @module
 */

import { canonicalInt64 } from "../packets/int64.ts";
import type { Int64 } from "../packets/packet.ts";
import { type ConnectionId, readConnectionId } from "../peer/connection_id.ts";

/** Fills `bytes` with random ones, such as `crypto.getRandomValues`. */
export type Randomness = (bytes: Uint8Array<ArrayBuffer>) => unknown;

/** A fresh dial id, uniform in [0, 2^63) as Go's `rand.Int63()` is. */
export function randomDialId(randomness: Randomness): Int64 {
  const bytes = new Uint8Array(8);
  randomness(bytes);
  const value = new DataView(bytes.buffer).getBigUint64(0) >> 1n;
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}

/** The `random` that carries `id`; an int64 as Go reads it. */
export function dialIdOf(id: ConnectionId): Int64 {
  return canonicalInt64(BigInt.asIntN(64, BigInt(`0x${id}`)));
}

/** The id that `random` carries; absent from peers that count their dials. */
export function connectionIdOf(random: Int64): ConnectionId | undefined {
  const text = BigInt.asUintN(64, BigInt(random)).toString(16);
  return readConnectionId(text.padStart(16, "0"));
}
