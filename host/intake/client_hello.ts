/**
 * Whether a TLS client has said enough to be answered (RFC 8446 §5.1).
 *
 * @module
 */

const HANDSHAKE = 22;
const RECORD_HEADER_OCTETS = 5;

/**
 * How much is looked at. A first record is hardly ever longer than this: with a
 * key share of ML-KEM it has 1.8 KiB. Of longer ones this much is waited for.
 */
export const HELLO_OCTETS_MAX = 4_096;

/**
 * True also for what is no TLS: whoever answers says so.
 *
 * @param octets What was said first, as far as it was looked at.
 */
export function isWholeHello(octets: Uint8Array): boolean {
  if (octets.length === 0) return false;
  if (octets[0] !== HANDSHAKE) return true;
  if (octets.length < RECORD_HEADER_OCTETS) return false;
  const length = RECORD_HEADER_OCTETS + (octets[3]! << 8 | octets[4]!);
  return octets.length >= Math.min(length, HELLO_OCTETS_MAX);
}
