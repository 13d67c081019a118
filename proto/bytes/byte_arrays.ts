/**
 * Bytes in arrays: joined, compared, and read and written as integers.
 *
 * @module
 */

/** All of them behind each other, in memory of their own. */
export function joinedBytes(
  parts: readonly Uint8Array[],
): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(
    parts.reduce((sum, { length }) => sum + length, 0),
  );
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

// Comparing bytes.

/** Whether two arrays hold the same bytes. Not for secrets: it takes its time. */
export function sameBytes(one: Uint8Array, other: Uint8Array): boolean {
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at++) {
    if (one[at] !== other[at]) return false;
  }
  return true;
}

// Numbers in network byte order, without a DataView per access.

/** Reads 32 bits unsigned, most significant byte first. */
export function readUint32(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 24 | bytes[at + 1]! << 16 | bytes[at + 2]! << 8 |
    bytes[at + 3]!) >>> 0;
}

/** Reads 16 bits unsigned. */
export function readUint16(bytes: Uint8Array, at: number): number {
  return bytes[at]! << 8 | bytes[at + 1]!;
}

/** Writes 32 bits. */
export function writeUint32(
  bytes: Uint8Array,
  at: number,
  value: number,
): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}

/** Writes 16 bits. */
export function writeUint16(
  bytes: Uint8Array,
  at: number,
  value: number,
): void {
  bytes[at] = value >>> 8;
  bytes[at + 1] = value;
}
