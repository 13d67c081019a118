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
 * - `ended`: both ends sent END_STREAM.
 * - `resetByPeer`: it sent RST_STREAM.
 * - `resetByUs`: we did, and the peer may not know yet.
 * - `ignored`: above the last stream id of our GOAWAY (§6.8).
 */
export type ClosedHow = "ended" | "resetByPeer" | "resetByUs" | "ignored";

/** See the module description. */
export class ClosedStreams {
  readonly #how: Map<number, ClosedHow> = new Map();
  /**
   * Oldest first. One for ever, because it goes on behind what is deleted and
   * sees what is added, while a fresh one would pass all that was deleted.
   */
  readonly #byAge: Iterator<number> = this.#how.keys();

  /** Remembers a stream, and forgets the one that closed longest ago. */
  remember(streamId: number, how: ClosedHow): void {
    this.#how.delete(streamId); // So that it becomes the youngest.
    this.#how.set(streamId, how);
    if (this.#how.size <= CLOSED_STREAMS_REMEMBERED) return;
    const oldest = this.#byAge.next().value; // A Map keeps its order.
    if (oldest !== undefined) this.#how.delete(oldest);
  }

  /** How a closed stream ended; `forgotten` also if it was never opened (§5.1.1). */
  recall(streamId: number): ClosedHow | "forgotten" {
    return this.#how.get(streamId) ?? "forgotten";
  }

  /** What still comes was under way when we gave the stream up (§5.1, §6.8). */
  isUnderWay(streamId: number): boolean {
    const how = this.#how.get(streamId);
    return how === "resetByUs" || how === "ignored";
  }
}
