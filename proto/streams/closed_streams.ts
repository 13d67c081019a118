/**
 * A short memory of how streams ended.
 *
 * Frames of a stream may still be under way when it closes, and RFC 9113 §5.1
 * treats them by the way it closed: after our own reset they are ignored, after
 * the peer's own end they are its error. We remember the last ones only; of the
 * older it suffices to know that they are closed.
 *
 * @module
 */

/**
 * How many are remembered. What is under way when we reset a stream arrives
 * within a round trip; a peer that closes more streams in one is served by
 * {@linkcode ClosedStreams.recall}'s lenient `forgotten`.
 */
export const CLOSED_STREAMS_REMEMBERED = 1024;

/**
 * What may still come on a stream beyond the window that was left when we reset
 * it: the peer may receive a larger first window (SETTINGS) before it receives
 * the reset. Also the window of a stream that was refused.
 */
export const LATE_BYTES_EXTRA = 65_536;

/**
 * - `ended`: both ends sent END_STREAM.
 * - `resetByPeer`: it sent RST_STREAM.
 * - `resetByUs`: we did, and the peer may not know yet.
 * - `ignored`: above the last stream id of our GOAWAY (§6.8).
 */
export type ClosedHow = "ended" | "resetByPeer" | "resetByUs" | "ignored";

export class ClosedStreams {
  readonly #how: Map<number, ClosedHow> = new Map();
  /** Bytes that may still come on streams that we gave up. */
  #late: Map<number, number> | undefined;
  /**
   * Oldest first. One for ever, because it goes on behind what is deleted and
   * sees what is added, while a fresh one would pass all that was deleted.
   */
  #byAge: Iterator<number> | undefined;

  /**
   * Remembers a stream, and forgets the one that closed longest ago.
   *
   * @param windowBytes What the peer could still send when it closed.
   */
  remember(streamId: number, how: ClosedHow, windowBytes = 0): void {
    this.#how.delete(streamId); // So that it becomes the youngest.
    this.#how.set(streamId, how);
    if (isGivenUp(how)) {
      const bytes = Math.max(0, windowBytes) + LATE_BYTES_EXTRA;
      this.#late ??= new Map();
      this.#late.set(streamId, bytes);
    }
    if (this.#how.size <= CLOSED_STREAMS_REMEMBERED) return;
    this.#byAge ??= this.#how.keys();
    const oldest = this.#byAge.next().value; // A Map keeps its order.
    if (oldest === undefined) return;
    this.#how.delete(oldest);
    this.#late?.delete(oldest);
  }

  /** How a closed stream ended; `forgotten` also if it was never opened (§5.1.1). */
  recall(streamId: number): ClosedHow | "forgotten" {
    return this.#how.get(streamId) ?? "forgotten";
  }

  /** What still comes was under way when we gave the stream up (§5.1, §6.8). */
  isUnderWay(streamId: number): boolean {
    return isGivenUp(this.#how.get(streamId));
  }

  /**
   * DATA has come on such a stream, and is dropped.
   *
   * @returns false: more than any window allowed, so the peer ignores resets.
   */
  takeLate(streamId: number, bytes: number): boolean {
    const left = (this.#late?.get(streamId) ?? 0) - bytes;
    this.#late?.set(streamId, left);
    return left >= 0;
  }
}

function isGivenUp(how: ClosedHow | undefined): boolean {
  return how === "resetByUs" || how === "ignored";
}
