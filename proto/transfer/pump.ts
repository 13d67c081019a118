/**
 * One direction of a transfer: from the conduit that delivers to the one that
 * takes.
 *
 * What the sink takes at once is never copied here. What it does not take is
 * queued and not answered with `consumed`, so the source stops after its window
 * and the queue is never longer than what the source may deliver ahead.
 *
 * @module
 */

import type { Conduit } from "./conduit.ts";
import { ByteQueue } from "./byte_queue.ts";

/** Hears that a source breaks its contract. */
export interface PumpOwner {
  /** Both directions are to be given up. */
  giveUp(reason: string): void;
}

/** See the module description. */
export class Pump {
  readonly #source: Conduit;
  readonly #sink: Conduit;
  readonly #queueBytesMax: number;
  readonly #owner: PumpOwner;
  /** Made when it is first needed: most connections never need one. */
  #queue: ByteQueue | undefined;
  #state: "flowing" | "ending" | "ended" | "stopped" = "flowing";
  #sourceIsOpen = true;
  #sourceIsGone = false;
  #isWriting = false;
  #wasWoken = false;
  #bytes = 0;
  #droppedDatagrams = 0;

  /**
   * @param queueBytesMax A source that delivers more than this ahead breaks its
   *   contract, and `owner` is told once; nothing is queued any more.
   */
  constructor(
    source: Conduit,
    sink: Conduit,
    queueBytesMax: number,
    owner: PumpOwner,
  ) {
    this.#source = source;
    this.#sink = sink;
    this.#queueBytesMax = queueBytesMax;
    this.#owner = owner;
  }

  /** Bytes that the sink took. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Datagrams that the sink did not take. */
  get droppedDatagrams(): number {
    return this.#droppedDatagrams;
  }

  /** True once the source has said that no more will come. */
  get sourceHasEnded(): boolean {
    return this.#state === "ending" || this.#state === "ended";
  }

  /** True once the sink has been told so too, behind everything else. */
  get hasEnded(): boolean {
    return this.#state === "ended";
  }

  /** `ConduitEvents.onData` of the source. */
  onData(chunk: Uint8Array): void {
    if (this.#state !== "flowing") return;
    if (this.#isWriting) {
      // The rest of the earlier chunk is in no queue yet: order would be lost.
      throw new TypeError(
        "Cannot transfer: onData was called during another onData",
      );
    }
    if (this.#source.datagrams) return this.#passDatagram(chunk);
    const taken = this.#waiting === 0 ? this.#write(chunk) : 0;
    if (this.#isStopped()) return;
    if (taken < chunk.length && !this.#keep(chunk, taken)) return;
    this.#passed(taken);
    if (this.#wasWoken) this.drain();
  }

  /** `ConduitEvents.onWritable` of the sink. */
  drain(): void {
    if (this.#isWriting) {
      this.#wasWoken = true;
      return;
    }
    this.#wasWoken = false;
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

  /** `ConduitEvents.onEnd` of the source. */
  onEnd(isGone = false): void {
    if (this.#state !== "flowing") return;
    this.#state = "ending";
    this.#sourceIsGone = isGone;
    this.#endWhenEmpty();
  }

  /** The source is closed: it is not told any more what was consumed. */
  onSourceClosed(): void {
    this.#sourceIsOpen = false;
  }

  /** Gives this direction up; what is queued is dropped. */
  stop(): void {
    // What has ended stays so: `hasEnded` tells a clean close from a broken one.
    if (this.#state !== "ended") this.#state = "stopped";
    this.#queue?.clear();
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
    if (this.#sourceIsOpen) this.#source.consumed(chunk.length);
  }

  #write(chunk: Uint8Array): number {
    this.#isWriting = true;
    const taken = this.#sink.write(chunk);
    this.#isWriting = false;
    return taken;
  }

  /** Queues what was not taken, before anything else can happen to `chunk`. */
  #keep(chunk: Uint8Array, taken: number): boolean {
    const waiting = this.#waiting + chunk.length - taken;
    if (waiting > this.#queueBytesMax) {
      this.stop();
      this.#owner.giveUp(
        `Cannot queue ${waiting} bytes for one direction: ` +
          `at most ${this.#queueBytesMax} wanted`,
      );
      return false;
    }
    this.#queue ??= new ByteQueue();
    this.#queue.push(taken === 0 ? chunk : chunk.subarray(taken));
    return true;
  }

  #passed(bytes: number): void {
    this.#bytes += bytes;
    if (bytes > 0 && this.#sourceIsOpen) this.#source.consumed(bytes);
  }

  #endWhenEmpty(): void {
    if (this.#state !== "ending" || this.#waiting > 0) return;
    this.#state = "ended";
    this.#sink.end(this.#sourceIsGone);
  }

  /** A method, because calls in between change what a type guard remembers. */
  #isStopped(): boolean {
    return this.#state === "stopped";
  }
}
