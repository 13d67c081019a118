/**
 * One direction of a transfer: from the conduit that delivers to the one that
 * takes.
 *
 * It receives the events of its source, and passes one of them to the opposite
 * direction: the source, which is that direction's sink, has room again. The
 * owner decides what an end means for both.
 *
 * Bytes that the sink takes at once are never copied here. The rest is queued
 * without `consumed`, so the source stops after its window, and the queue is
 * never longer than that window.
 *
 * @module
 */

import { PooledQueue } from "./pooled_queue.ts";
import type { Conduit, ConduitEnd, ConduitEvents } from "./conduit.ts";

/** Decides about both directions. */
export interface PumpOwner {
  /** A source sends no more. */
  onEnded(pump: Pump): void;
  /** A source is closed. */
  onClosed(pump: Pump, end: ConduitEnd): void;
  /** A source breaks its contract: both directions are to be given up. */
  giveUp(reason: string): void;
  /** An internal error: the same, and it must be reported. */
  faulted(error: unknown): void;
}

/**
 * - `ending`: the source sends no more, and that waits behind what is queued;
 *   `leaving`: the same, and the source reads no more either.
 * - `ended`: the sink was ended, behind everything else.
 * - `stopped`: given up.
 */
type State = "flowing" | "ending" | "leaving" | "ended" | "stopped";

export class Pump implements ConduitEvents {
  /** Forgotten when it is closed: `consumed` is not called any more. */
  #source: Conduit | undefined;
  #opposite!: Pump;
  /** Made when it is first needed: most connections never need one. */
  #queue: PooledQueue | undefined;
  #state: State = "flowing";
  /** Whether `write` of the sink runs, and whether the sink had room then. */
  #sinkIs: "idle" | "taking" | "taking, woken" | "woken" = "idle";
  #bytes = 0;
  #droppedDatagrams = 0;

  /**
   * Both directions between two conduits, from `a` to `b` first.
   *
   * @param queueBytesMax A source that delivers more than this ahead breaks its
   *   contract, and `owner` is notified once; nothing is queued any more.
   */
  static pair(
    a: Conduit,
    b: Conduit,
    queueBytesMax: number,
    owner: PumpOwner,
  ): readonly [Pump, Pump] {
    const aToB = new Pump(a, b, queueBytesMax, owner);
    const bToA = new Pump(b, a, queueBytesMax, owner);
    aToB.#opposite = bToA;
    bToA.#opposite = aToB;
    return [aToB, bToA];
  }

  private constructor(
    source: Conduit,
    private readonly sink: Conduit,
    private readonly queueBytesMax: number,
    private readonly owner: PumpOwner,
  ) {
    this.#source = source;
  }

  /** Bytes that the sink took. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Bytes that wait in both directions. */
  get queuedBytes(): number {
    return this.#waiting + this.#opposite.#waiting;
  }

  /** Datagrams that the sink did not take. */
  get droppedDatagrams(): number {
    return this.#droppedDatagrams;
  }

  /** True once the source has ended its data. */
  get sourceHasEnded(): boolean {
    return this.#state !== "flowing" && this.#state !== "stopped";
  }

  /** Gives this direction up; queued bytes are dropped. */
  stop(): void {
    // An ended direction stays so: that separates a clean close from a broken
    // one.
    if (this.#state !== "ended") this.#state = "stopped";
    this.#queue?.clear();
  }

  // --- Events of the source ------------------------------------------------------

  onData(chunk: Uint8Array): void {
    try {
      this.#take(chunk);
    } catch (error) {
      this.owner.faulted(error);
    }
  }

  onWritable(): void {
    try {
      this.#opposite.#drain();
    } catch (error) {
      this.owner.faulted(error);
    }
  }

  onEnd(isGone = false): void {
    try {
      if (this.#state === "flowing") {
        this.#state = isGone ? "leaving" : "ending";
        this.#endWhenEmpty();
      }
      this.owner.onEnded(this);
    } catch (error) {
      this.owner.faulted(error);
    }
  }

  onClose(closed: ConduitEnd): void {
    try {
      const end = this.#inOrder(closed);
      this.#source = undefined;
      this.#opposite.stop();
      if (end.kind !== "clean") this.stop();
      this.owner.onClosed(this, end);
    } catch (error) {
      this.owner.faulted(error);
    }
  }

  // --- From the source to the sink -----------------------------------------------

  #take(chunk: Uint8Array): void {
    if (this.#state !== "flowing") return;
    if (this.#isTaking()) {
      // The rest of the earlier chunk is in no queue yet: order would be lost.
      throw new TypeError(
        "Cannot transfer: onData was called during another onData",
      );
    }
    if (this.sink.datagrams) return this.#passDatagram(chunk);
    const taken = this.#waiting === 0 ? this.#write(chunk) : 0;
    if (this.#isStopped()) return;
    if (taken < chunk.length && !this.#keep(chunk, taken)) return;
    this.#passed(taken);
    if (this.#sinkIs === "woken") this.#drain();
  }

  /** The sink has room. */
  #drain(): void {
    if (this.#isTaking()) {
      this.#sinkIs = "taking, woken";
      return;
    }
    this.#sinkIs = "idle";
    const queue = this.#queue;
    while (queue !== undefined && queue.bytes > 0) {
      const waiting = queue.peek();
      const offered = waiting.length;
      const taken = this.#write(waiting);
      if (this.#isStopped()) return;
      queue.drop(taken);
      this.#passed(taken);
      if (taken < offered) break;
    }
    this.#endWhenEmpty();
  }

  /** Bytes in the queue. */
  get #waiting(): number {
    return this.#queue?.bytes ?? 0;
  }

  #passDatagram(chunk: Uint8Array): void {
    // Taken or dropped, never queued: a late datagram is worth nothing.
    const taken = this.#write(chunk);
    if (taken < chunk.length) this.#droppedDatagrams++;
    else this.#bytes += taken;
    this.#source?.consumed(chunk.length);
  }

  #write(chunk: Uint8Array): number {
    this.#sinkIs = "taking";
    const taken = this.sink.write(chunk);
    this.#sinkIs = this.#wasWoken() ? "woken" : "idle";
    return taken;
  }

  /** Queues the rest, before `chunk` can change. */
  #keep(chunk: Uint8Array, taken: number): boolean {
    const waiting = this.#waiting + chunk.length - taken;
    if (waiting > this.queueBytesMax) {
      this.stop();
      this.owner.giveUp(
        `Cannot queue ${waiting} bytes for one direction: ` +
          `at most ${this.queueBytesMax} wanted`,
      );
      return false;
    }
    this.#queue ??= new PooledQueue();
    this.#queue.push(taken === 0 ? chunk : chunk.subarray(taken));
    return true;
  }

  #passed(bytes: number): void {
    this.#bytes += bytes;
    if (bytes > 0) this.#source?.consumed(bytes);
  }

  #endWhenEmpty(): void {
    const isLeaving = this.#state === "leaving";
    if (!isLeaving && this.#state !== "ending" || this.#waiting > 0) return;
    this.#state = "ended";
    this.sink.end(isLeaving);
  }

  /**
   * `end`, unless a conduit calls an end clean that came from one side only.
   */
  #inOrder(end: ConduitEnd): ConduitEnd {
    const isWhole = this.sourceHasEnded && this.#opposite.#state === "ended";
    return end.kind !== "clean" || isWhole
      ? end
      : { kind: "lost", reason: "the connection closed before its end" };
  }

  // Methods, because calls in between change what a type guard remembers.

  #isStopped(): boolean {
    return this.#state === "stopped";
  }

  #isTaking(): boolean {
    return this.#sinkIs === "taking" || this.#sinkIs === "taking, woken";
  }

  #wasWoken(): boolean {
    return this.#sinkIs === "taking, woken";
  }
}
