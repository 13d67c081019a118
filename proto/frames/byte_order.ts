/**
 * Numbers in network byte order, without a DataView per access.
 *
 * @module
 */

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
