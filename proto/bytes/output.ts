/**
 * The bytes that wait to be written to one peer, as a few large batches.
 *
 * Frames are built in place: `reserve` makes room, the caller writes into
 * `buffer`. The driver takes one batch at a time and reports when it is
 * written, so that bytes produced meanwhile join the next write.
 *
 * Two kinds of bytes are counted separately, because they have separate limits:
 * bulk (DATA, whose senders wait) and control (everything else, which cannot
 * wait). A small urgent lane overtakes queued bulk between two batches.
 *
 * @module
 */

import {
  BUFFER_BYTES_MAX,
  type BufferPool,
  sharedBufferPool,
} from "./buffer_pool.ts";

/** No batch is larger, unless one single reservation is. */
export const BATCH_BYTES_MAX: number = BUFFER_BYTES_MAX;

/**
 * With fewer bytes in front, the urgent lane is not worth a write of its own:
 * 16 KiB leave in far less than a round trip.
 */
const URGENT_ABOVE_BYTES = 16 * 1024;

/**
 * What the first frame of a batch gets at least; batches grow by need. Timers of
 * a whole crowd of links are due at once: each has a PING in a batch of its own.
 */
const BATCH_BYTES_MIN = 512;

const NOTHING: Uint8Array = new Uint8Array(0);

/** Which bound the bytes count against. */
export type OutputKind = "control" | "bulk";

class Batch {
  buffer: Uint8Array<ArrayBuffer>;
  used = 0;
  controlBytes = 0;

  constructor(buffer: Uint8Array<ArrayBuffer>) {
    this.buffer = buffer;
  }
}

export class Output {
  /** Full batches in order; the last one may still be `#current`. */
  readonly #queue: Batch[] = [];
  #current: Batch | undefined;
  #urgent: Batch | undefined;
  #inFlight: Batch | undefined;
  #target = NOTHING;
  #queuedBytes = 0;
  #controlBytes = 0;
  #hasTaken = false;

  constructor(private readonly pool: BufferPool = sharedBufferPool) {}

  /** The place of the bytes reserved last. Read it after each reservation. */
  get buffer(): Uint8Array {
    return this.#target;
  }

  /** Bytes not yet written, the batch in flight included. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** The part of them that was reserved as control. */
  get controlBytes(): number {
    return this.#controlBytes;
  }

  /** True between `take` and `written`. */
  get isInFlight(): boolean {
    return this.#inFlight !== undefined;
  }

  /**
   * Makes room for `bytes` in one piece behind everything else.
   *
   * @returns The offset in {@linkcode Output.buffer} where to write them. All
   *   of them must be written before anything else happens.
   */
  reserve(bytes: number, kind: OutputKind): number {
    const batch = this.#batchFor(bytes);
    return this.#reserveIn(batch, bytes, kind);
  }

  /**
   * As `reserve` for control bytes, but before queued bulk. Only for frames
   * whose order among the others does not matter (PING, WINDOW_UPDATE).
   */
  reserveUrgent(bytes: number): number {
    const waiting = this.#queuedBytes - (this.#inFlight?.used ?? 0);
    const isNear = this.#urgent === undefined && waiting < URGENT_ABOVE_BYTES;
    // Nothing may overtake the very first bytes, the connection preface.
    if (isNear || !this.#hasTaken) {
      return this.reserve(bytes, "control");
    }
    this.#urgent ??= new Batch(this.pool.acquire(BATCH_BYTES_MIN));
    this.#fit(this.#urgent, bytes);
    return this.#reserveIn(this.#urgent, bytes, "control");
  }

  /**
   * Hands out the next batch to write, or `undefined` when there is none or
   * one is in flight. The view is valid until `written`.
   */
  take(): Uint8Array | undefined {
    if (this.#inFlight !== undefined) return undefined;
    let batch = this.#urgent;
    if (batch !== undefined) {
      this.#urgent = undefined;
    } else {
      batch = this.#queue.shift();
      if (batch === this.#current) this.#current = undefined;
    }
    this.#inFlight = batch;
    this.#hasTaken ||= batch !== undefined;
    return batch?.buffer.subarray(0, batch.used);
  }

  /** The batch that `take` gave is out: its buffer goes back to the pool. */
  written(): void {
    const batch = this.#inFlight;
    if (batch === undefined) {
      throw new TypeError("Cannot finish a write: no batch was taken");
    }
    this.#inFlight = undefined;
    this.#drop(batch);
  }

  /** Drops what was not taken yet; a batch in flight stays with the driver. */
  discard(): void {
    for (const batch of this.#queue) this.#drop(batch);
    if (this.#urgent !== undefined) this.#drop(this.#urgent);
    this.#queue.length = 0;
    this.#current = undefined;
    this.#urgent = undefined;
  }

  #reserveIn(batch: Batch, bytes: number, kind: OutputKind): number {
    const offset = batch.used;
    batch.used += bytes;
    this.#queuedBytes += bytes;
    if (kind === "control") {
      batch.controlBytes += bytes;
      this.#controlBytes += bytes;
    }
    this.#target = batch.buffer;
    return offset;
  }

  #batchFor(bytes: number): Batch {
    const current = this.#current;
    if (current !== undefined && current.used + bytes <= BATCH_BYTES_MAX) {
      this.#fit(current, bytes);
      return current;
    }
    const size = Math.max(bytes, BATCH_BYTES_MIN);
    const batch = new Batch(this.pool.acquire(size));
    this.#queue.push(batch);
    this.#current = batch;
    return batch;
  }

  /** Moves a batch to a larger buffer if needed: at most 16 KiB are copied twice. */
  #fit(batch: Batch, bytes: number): void {
    const needed = batch.used + bytes;
    if (needed <= batch.buffer.length) return;
    const larger = this.pool.acquire(needed);
    larger.set(batch.buffer.subarray(0, batch.used));
    this.pool.release(batch.buffer);
    batch.buffer = larger;
  }

  #drop(batch: Batch): void {
    this.#queuedBytes -= batch.used;
    this.#controlBytes -= batch.controlBytes;
    this.pool.release(batch.buffer);
  }
}
