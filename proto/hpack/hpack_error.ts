/**
 * What can go wrong with a header block a peer sent us.
 *
 * The lowest layer that throws it owns it: `streams` turns it into a connection
 * error COMPRESSION_ERROR (RFC 9113 §4.3), for after one bad block the two
 * tables may differ and no later block can be trusted.
 *
 * @module
 */

/** Thrown by the decoder when a block breaks RFC 7541 or a hard limit. */
export class HpackError extends Error {
  override readonly name = "HpackError";

  /**
   * @param section The RFC 7541 section that was broken, such as `"4.2"`.
   * @param message What we were doing and what we saw instead.
   */
  constructor(readonly section: string, message: string) {
    super(`${message} (RFC 7541 §${section})`);
  }
}
