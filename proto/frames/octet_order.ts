/**
 * Numbers in network byte order, without a DataView per access.
 *
 * @module
 */

/** Reads 32 bits unsigned, most significant octet first. */
export function readUint32(octets: Uint8Array, at: number): number {
  return (octets[at]! << 24 | octets[at + 1]! << 16 | octets[at + 2]! << 8 |
    octets[at + 3]!) >>> 0;
}

/** Reads 16 bits unsigned. */
export function readUint16(octets: Uint8Array, at: number): number {
  return octets[at]! << 8 | octets[at + 1]!;
}

/** Writes 32 bits. */
export function writeUint32(
  octets: Uint8Array,
  at: number,
  value: number,
): void {
  octets[at] = value >>> 24;
  octets[at + 1] = value >>> 16;
  octets[at + 2] = value >>> 8;
  octets[at + 3] = value;
}

/** Writes 16 bits. */
export function writeUint16(
  octets: Uint8Array,
  at: number,
  value: number,
): void {
  octets[at] = value >>> 8;
  octets[at + 1] = value;
}
