/**
 * Whether a TLS client has sent a whole ClientHello (RFC 8446 §5.1).
 *
 * @module
 */

const HANDSHAKE = 22;
const RECORD_HEADER_BYTES = 5;

/**
 * How much is looked at. A first record is hardly ever longer than this: with a
 * key share of ML-KEM it has 1.8 KiB. Of longer ones this much is waited for.
 */
export const HELLO_BYTES_MAX = 4_096;

/**
 * True also for bytes that are no TLS: the handshake reports that.
 *
 * @param bytes The first bytes, as far as they were peeked.
 */
export function isWholeHello(bytes: Uint8Array): boolean {
  if (bytes.length === 0) return false;
  if (bytes[0] !== HANDSHAKE) return true;
  if (bytes.length < RECORD_HEADER_BYTES) return false;
  const length = RECORD_HEADER_BYTES + (bytes[3]! << 8 | bytes[4]!);
  return bytes.length >= Math.min(length, HELLO_BYTES_MAX);
}
