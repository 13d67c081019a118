/**
 * The bytes of node's `Buffer`s.
 *
 * @module
 */

/**
 * The same bytes without node's `Buffer` around them, whose `slice` makes a
 * view where everybody else's makes a copy.
 */
export function plainBytes(buffer: Uint8Array): Uint8Array {
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.length);
}
