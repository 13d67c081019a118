/**
 * The response that a client has not read, and when the client is given up:
 * nothing else is made for it meanwhile.
 *
 * @module
 */

/** After so long without reading a byte of a response a client is given up. */
export const STALLED_MS = 60_000;

/** A response that is read byte by byte is given up after this. */
export const RESPONSE_MS_MAX = 600_000;

/** See the module description; of one stream. */
export class UnreadResponse {
  #bytes = 0;
  /** Since when it is that much. */
  #sinceMs = 0;
  #sentMs = 0;

  /** @param bytes What the client did not read at once. */
  sent(bytes: number, nowMs: number): void {
    this.#bytes = bytes;
    this.#sinceMs = nowMs;
    this.#sentMs = nowMs;
  }

  /**
   * Compares with what is unread by now.
   *
   * @returns Why the client is given up, if it is.
   */
  look(bytes: number, nowMs: number): string | undefined {
    if (nowMs - this.#sentMs >= RESPONSE_MS_MAX) {
      return `The client did not take a whole response in ${
        RESPONSE_MS_MAX / 1_000
      } s; connect again to get everything`;
    }
    if (bytes !== this.#bytes) {
      this.#bytes = bytes;
      this.#sinceMs = nowMs;
      return undefined;
    }
    if (nowMs - this.#sinceMs < STALLED_MS) return undefined;
    return `The client took nothing of a response for ${
      STALLED_MS / 1_000
    } s; connect again to get everything`;
  }
}
