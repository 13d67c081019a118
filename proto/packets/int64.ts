/**
 * Exact protobuf `int64` values and their varints (SPEC.md, "Integers").
 *
 * `random` is uniform in [0, 2^63), so 99.9 % of them do not fit a JavaScript
 * number; a codec that parses them into one answers the wrong dial. Small
 * values stay numbers because every DATA packet carries a `connectID`.
 *
 * @module
 */

import type { Int64 } from "./packet.ts";

/** Longest varint of 64 bits; a negative int64 always needs all of it. */
export const VARINT_BYTES_MAX = 10;

/** 2^32 and 2^21: where the high half stops fitting a safe integer. */
const TWO_32 = 0x1_0000_0000;
const SAFE_HIGH_LIMIT = 0x20_0000;

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;

/**
 * The value of a two's complement pair, in its one representation.
 *
 * @param low The lower 32 bits, signed or unsigned.
 * @param high The upper 32 bits, signed or unsigned.
 */
export function int64FromBits(low: number, high: number): Int64 {
  const signedHigh = high | 0;
  const unsignedLow = low >>> 0;
  if (signedHigh >= -SAFE_HIGH_LIMIT && signedHigh < SAFE_HIGH_LIMIT) {
    const value = signedHigh * TWO_32 + unsignedLow;
    if (Number.isSafeInteger(value)) return value;
  }
  return (BigInt(signedHigh) << 32n) | BigInt(unsignedLow);
}

/** The lower 32 bits of `value`, unsigned. */
export function lowBits(value: Int64): number {
  return typeof value === "number"
    ? value >>> 0
    : Number(BigInt.asUintN(32, value));
}

/** The upper 32 bits of `value`, unsigned. */
export function highBits(value: Int64): number {
  return typeof value === "number"
    ? Math.floor(value / TWO_32) >>> 0
    : Number(BigInt.asUintN(32, value >> 32n));
}

/**
 * Brings a value into its one representation, so that it works as a `Map` key.
 *
 * @throws {RangeError} If it is no integer or does not fit 64 bits, or is a
 *   number beyond the safe integers (it has lost digits already).
 */
export function canonicalInt64(value: Int64): Int64 {
  if (typeof value === "number") {
    if (Number.isSafeInteger(value)) return value;
  } else if (value >= INT64_MIN && value <= INT64_MAX) {
    const short = Number(value);
    return Number.isSafeInteger(short) ? short : value;
  }
  throw new RangeError(
    `Cannot use ${value} as an int64: wanted an exact 64-bit integer`,
  );
}

/** How many bytes the varint of an unsigned 32-bit `value` takes. */
export function varint32Bytes(value: number): number {
  if (value < 0x80) return 1;
  if (value < 0x4000) return 2;
  if (value < 0x20_0000) return 3;
  return value < 0x1000_0000 ? 4 : 5;
}

/** How many bytes the varint of `value` takes. */
export function varintBytes(value: Int64): number {
  if (typeof value === "number" && value >= 0 && value < TWO_32) {
    return varint32Bytes(value);
  }
  let high = highBits(value);
  if (high === 0) return varint32Bytes(lowBits(value));
  // Four bytes hold 28 bits of the low half; the fifth shares its upper three
  // bits with the high half.
  let bytes = 5;
  for (high >>>= 3; high !== 0; high >>>= 7) bytes++;
  return bytes;
}

/**
 * Writes the varint of `value`.
 *
 * @returns The offset behind it.
 */
export function writeVarint(
  into: Uint8Array,
  at: number,
  value: Int64,
): number {
  let low = lowBits(value);
  let high = highBits(value);
  let offset = at;
  while (high !== 0) {
    into[offset++] = (low & 0x7f) | 0x80;
    low = ((low >>> 7) | (high << 25)) >>> 0;
    high >>>= 7;
  }
  while (low > 0x7f) {
    into[offset++] = (low & 0x7f) | 0x80;
    low >>>= 7;
  }
  into[offset++] = low;
  return offset;
}
