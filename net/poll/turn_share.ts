/**
 * How much of what was read is dealt with before others have a turn.
 *
 * All bytes are not alike: 64 KiB of DATA are one copy, 64 KiB of the smallest
 * frames some thousand small tasks, for as many milliseconds. So time is
 * rationed, not bytes: what the last bytes took decides how many may come next.
 *
 * @module
 */

/** No connection waits much longer than this for another one's bytes. */
export const POLL_TURN_MS = 0.25;

/** A frame or two; what they cost at the most is bounded elsewhere. */
export const SHARE_BYTES_MIN = 1024;

/** More than any read gives. */
const SHARE_BYTES_MAX = 1024 * 1024;

/** Before anything is known of a peer. It doubles with each share that is cheap. */
const SHARE_BYTES_FIRST = SHARE_BYTES_MIN;

/** Below this part of a turn shares grow. */
const CHEAP = 1 / 4;

export class TurnShare {
  /** How many to deal with until it is looked what they took. */
  bytes: number = SHARE_BYTES_FIRST;
  #spentMs = 0;

  /**
   * So many took so long.
   *
   * @returns Whether others should have a turn, even if that was all.
   */
  took(bytes: number, ms: number): boolean {
    if (ms > POLL_TURN_MS) {
      this.bytes = Math.max(SHARE_BYTES_MIN, Math.floor(bytes / 2));
    } else if (ms < CHEAP * POLL_TURN_MS && bytes >= this.bytes) {
      this.bytes = Math.min(2 * this.bytes, SHARE_BYTES_MAX);
    }
    this.#spentMs += ms;
    if (this.#spentMs < POLL_TURN_MS) return false;
    this.#spentMs = 0;
    return true;
  }
}
