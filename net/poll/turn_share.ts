/**
 * How many bytes of a read are processed before other connections have a turn.
 *
 * Bytes differ in cost: 64 KiB of DATA are one copy, 64 KiB of the smallest
 * frames some thousand small tasks, for as many milliseconds. So time is
 * rationed, not bytes: the time of the last bytes decides how many may come
 * next.
 *
 * @module
 */

/** No connection waits much longer than this for another's bytes. */
export const POLL_TURN_MS = 0.25;

/** A frame or two; their highest cost is limited elsewhere. */
export const SHARE_BYTES_MIN = 1024;

/** More than any read gives. */
const SHARE_BYTES_MAX = 1024 * 1024;

/** The first share of an unknown peer. It doubles with each cheap share. */
const SHARE_BYTES_FIRST = SHARE_BYTES_MIN;

/** Below this part of a turn shares grow. */
const CHEAP = 1 / 4;

export class TurnShare {
  /** How many bytes to process before their time is measured. */
  bytes: number = SHARE_BYTES_FIRST;
  #spentMs = 0;

  /**
   * Reports bytes and their time.
   *
   * @returns Whether others should have a turn, even if these were the last
   *   bytes.
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
