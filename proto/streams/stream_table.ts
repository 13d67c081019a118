/**
 * Which streams there are: open, waiting, closed or yet to come
 * (RFC 9113 §5.1.1 and §5.1.2).
 *
 * @module
 */

import { UINT31_MAX } from "../frames/frame.ts";
import type { Role } from "./connection_events.ts";
import type { EngineStream } from "./engine_stream.ts";

/**
 * A connection counts as used up when only this many ids are left: enough for
 * callers that open streams while a new connection is being made.
 */
export const STREAM_IDS_RESERVED = 10_000;

/** The stage of a stream's life by its id, when it is not open. */
type AbsentStream = "idle" | "closed";

/** Nothing is ever put into it. */
const NOBODY: Set<EngineStream> = new Set();

export class StreamTable {
  /** How departed streams have ended. */
  readonly closed: ClosedStreams = new ClosedStreams();
  /** The highest id that the peer has opened, or tried to. */
  lastPeerId = 0;
  readonly #open: Map<number, EngineStream> = new Map();
  /** Made when one waits. */
  #pending = NOBODY;
  readonly #localParity: number;
  #nextLocalId: number;
  #localOpen = 0;

  /** @param firstLocalId The first id that we will give. */
  constructor(role: Role, firstLocalId: number = role === "client" ? 1 : 2) {
    this.#localParity = role === "client" ? 1 : 0;
    if (firstLocalId % 2 !== this.#localParity || firstLocalId < 1) {
      throw new RangeError(`Cannot start with stream id ${firstLocalId}`);
    }
    this.#nextLocalId = firstLocalId;
  }

  /** Open streams of both sides, without those that wait. */
  get size(): number {
    return this.#open.size;
  }

  /** Open streams that we opened. */
  get localOpen(): number {
    return this.#localOpen;
  }

  /** Open streams that the peer opened. */
  get peerOpen(): number {
    return this.#open.size - this.#localOpen;
  }

  /** Streams that wait for the peer's MAX_CONCURRENT_STREAMS. */
  get pending(): number {
    return this.#pending.size;
  }

  /** The id that our next stream will have. */
  get nextLocalId(): number {
    return this.#nextLocalId;
  }

  /** False when only the reserve of ids is left. */
  get hasIdsToSpare(): boolean {
    return this.#nextLocalId + 2 * STREAM_IDS_RESERVED <= UINT31_MAX;
  }

  /** False when not even one id is left. */
  get hasIds(): boolean {
    return this.#nextLocalId + 2 * this.#pending.size <= UINT31_MAX;
  }

  get(streamId: number): EngineStream | undefined {
    return this.#open.get(streamId);
  }

  /** A copy, safe against changes while it is gone through. */
  all(): EngineStream[] {
    return [...this.#open.values()];
  }

  isLocal(streamId: number): boolean {
    return streamId % 2 === this.#localParity;
  }

  /** The meaning of an id that is not open. */
  absent(streamId: number): AbsentStream {
    const isIdle = this.isLocal(streamId)
      ? streamId >= this.#nextLocalId
      : streamId > this.lastPeerId;
    return isIdle ? "idle" : "closed";
  }

  addPeer(stream: EngineStream): void {
    this.#open.set(stream.id, stream);
  }

  /**
   * Opens one of our streams, unless it has to wait.
   *
   * @param concurrentMax The peer's MAX_CONCURRENT_STREAMS.
   * @returns Its id, or `undefined` when it has to wait.
   */
  openNow(stream: EngineStream, concurrentMax: number): number | undefined {
    if (this.#pending.size > 0 || this.#localOpen >= concurrentMax) return;
    return this.#give(stream);
  }

  addPending(stream: EngineStream): void {
    if (this.#pending === NOBODY) this.#pending = new Set();
    this.#pending.add(stream);
  }

  removePending(stream: EngineStream): void {
    this.#pending.delete(stream);
  }

  /** A copy of those that wait, oldest first. */
  allPending(): EngineStream[] {
    return [...this.#pending];
  }

  /**
   * Moves the stream that waits longest among the open ones.
   *
   * @param concurrentMax The peer's MAX_CONCURRENT_STREAMS.
   * @returns It and its id, or `undefined` when none waits or may be opened.
   */
  promote(
    concurrentMax: number,
  ): { stream: EngineStream; streamId: number } | undefined {
    if (this.#pending.size === 0 || this.#localOpen >= concurrentMax) return;
    const stream = this.#pending.values().next().value!;
    this.#pending.delete(stream);
    return { stream, streamId: this.#give(stream) };
  }

  #give(stream: EngineStream): number {
    const streamId = this.#nextLocalId;
    this.#nextLocalId += 2;
    this.#localOpen++;
    this.#open.set(streamId, stream);
    return streamId;
  }

  /** Removes an open stream; `false` if it was not open. */
  remove(streamId: number, how: ClosedHow): boolean {
    const stream = this.#open.get(streamId);
    if (stream === undefined) return false;
    this.#open.delete(streamId);
    if (this.isLocal(streamId)) this.#localOpen--;
    this.closed.remember(streamId, how, stream.receiveWindow.available);
    return true;
  }
}

// A short memory of how streams ended.
//
// Frames of a stream may still be under way when it closes, and RFC 9113 §5.1
// treats them by the way it closed: after our own reset they are ignored, after
// the peer's own end they are its error. We remember the last ones only; of the
// older it suffices to know that they are closed.

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
  // A ring once it is full. A `Map` with constant additions and removals is
  // rebuilt all the time; the search through the ring is for frames of closed
  // streams only, which are rare.
  readonly #ids: number[] = [];
  readonly #ends: ClosedHow[] = [];
  /** Index of the next entry: the place of the oldest. */
  #next = 0;
  /** Bytes that may still come on streams that we gave up. */
  #late: Map<number, number> | undefined;

  /**
   * Remembers a stream, and forgets the one that closed longest ago.
   *
   * @param windowBytes What the peer could still send when it closed.
   */
  remember(streamId: number, how: ClosedHow, windowBytes = 0): void {
    const at = this.#next;
    this.#next = (at + 1) % CLOSED_STREAMS_REMEMBERED;
    const oldest = at < this.#ids.length ? this.#ids[at]! : undefined;
    this.#ids[at] = streamId;
    this.#ends[at] = how;
    // One that closed twice is known by its second end.
    if (oldest !== undefined && this.#late?.has(oldest) === true) {
      if (this.#endOf(oldest) === undefined) this.#late.delete(oldest);
    }
    if (isGivenUp(how)) {
      const bytes = Math.max(0, windowBytes) + LATE_BYTES_EXTRA;
      this.#late ??= new Map();
      this.#late.set(streamId, bytes);
    }
  }

  /** The youngest first. */
  #endOf(streamId: number): ClosedHow | undefined {
    const { length } = this.#ids;
    for (let back = 1; back <= length; back++) {
      const at = (this.#next - back + length) % length;
      if (this.#ids[at] === streamId) return this.#ends[at];
    }
    return undefined;
  }

  /** How a closed stream ended; `forgotten` also if it was never opened (§5.1.1). */
  recall(streamId: number): ClosedHow | "forgotten" {
    return this.#endOf(streamId) ?? "forgotten";
  }

  /** What still comes was under way when we gave the stream up (§5.1, §6.8). */
  isUnderWay(streamId: number): boolean {
    return isGivenUp(this.#endOf(streamId));
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
