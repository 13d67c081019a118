/**
 * The octets that wait to be written to one peer, as a few large batches.
 *
 * Frames are built in place: `reserve` makes room, the caller writes into
 * `buffer`. The driver takes one batch at a time and says when it is written,
 * so that whatever is produced meanwhile joins the next write.
 *
 * Two kinds of octets are counted apart, because they are bounded apart: bulk
 * (DATA, whose senders wait) and control (everything else, which cannot wait).
 * A small urgent lane overtakes queued bulk between two batches.
 *
 * @module
 */

import {
  BUFFER_OCTETS_MAX,
  type BufferPool,
  sharedBufferPool,
} from "./buffer_pool.ts";

/** No batch is larger, unless one single reservation is. */
export const BATCH_OCTETS_MAX: number = BUFFER_OCTETS_MAX;

/**
 * With fewer octets in front, the urgent lane is not worth a write of its own:
 * 16 KiB leave in far less than a round trip.
 */
const URGENT_ABOVE_OCTETS = 16 * 1024;

/** What the first frame of a batch gets at least; batches grow by need. */
const BATCH_OCTETS_MIN = 2 * 1024;

const NOTHING: Uint8Array = new Uint8Array(0);

/** Which bound the octets count against. */
export type OutputKind = "control" | "bulk";

class Batch {
  buffer: Uint8Array<ArrayBuffer>;
  used = 0;
  controlOctets = 0;

  constructor(buffer: Uint8Array<ArrayBuffer>) {
    this.buffer = buffer;
  }
}

/** See the module description. */
export class Output {
  readonly #pool: BufferPool;
  /** Full batches in order; the last one may still be `#current`. */
  readonly #queue: Batch[] = [];
  #current: Batch | undefined;
  #urgent: Batch | undefined;
  #inFlight: Batch | undefined;
  #target = NOTHING;
  #queuedOctets = 0;
  #controlOctets = 0;
  #hasTaken = false;

  constructor(pool: BufferPool = sharedBufferPool) {
    this.#pool = pool;
  }

  /** Where the octets reserved last belong. Read it after each reservation. */
  get buffer(): Uint8Array {
    return this.#target;
  }

  /** Octets not yet written, the batch in flight included. */
  get queuedOctets(): number {
    return this.#queuedOctets;
  }

  /** The part of them that was reserved as control. */
  get controlOctets(): number {
    return this.#controlOctets;
  }

  /** True between `take` and `written`. */
  get isInFlight(): boolean {
    return this.#inFlight !== undefined;
  }

  /**
   * Makes room for `octets` in one piece behind everything else.
   *
   * @returns The offset in {@linkcode Output.buffer} where to write them. All
   *   of them must be written before anything else happens.
   */
  reserve(octets: number, kind: OutputKind): number {
    const batch = this.#batchFor(octets);
    return this.#reserveIn(batch, octets, kind);
  }

  /**
   * As `reserve` for control octets, but in front of queued bulk. Only for
   * frames whose order among the others does not matter (PING, WINDOW_UPDATE).
   */
  reserveUrgent(octets: number): number {
    const waiting = this.#queuedOctets - (this.#inFlight?.used ?? 0);
    const isNear = this.#urgent === undefined && waiting < URGENT_ABOVE_OCTETS;
    // Nothing may overtake the very first octets, the connection preface.
    if (isNear || !this.#hasTaken) {
      return this.reserve(octets, "control");
    }
    this.#urgent ??= new Batch(this.#pool.acquire(BATCH_OCTETS_MIN));
    this.#fit(this.#urgent, octets);
    return this.#reserveIn(this.#urgent, octets, "control");
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

  /** Forgets what was not taken yet; a batch in flight stays its taker's. */
  discard(): void {
    for (const batch of this.#queue) this.#drop(batch);
    if (this.#urgent !== undefined) this.#drop(this.#urgent);
    this.#queue.length = 0;
    this.#current = undefined;
    this.#urgent = undefined;
  }

  #reserveIn(batch: Batch, octets: number, kind: OutputKind): number {
    const offset = batch.used;
    batch.used += octets;
    this.#queuedOctets += octets;
    if (kind === "control") {
      batch.controlOctets += octets;
      this.#controlOctets += octets;
    }
    this.#target = batch.buffer;
    return offset;
  }

  #batchFor(octets: number): Batch {
    const current = this.#current;
    if (current !== undefined && current.used + octets <= BATCH_OCTETS_MAX) {
      this.#fit(current, octets);
      return current;
    }
    const size = Math.max(octets, BATCH_OCTETS_MIN);
    const batch = new Batch(this.#pool.acquire(size));
    this.#queue.push(batch);
    this.#current = batch;
    return batch;
  }

  /** Moves a batch to a larger buffer if needed: at most 16 KiB are copied twice. */
  #fit(batch: Batch, octets: number): void {
    const needed = batch.used + octets;
    if (needed <= batch.buffer.length) return;
    const larger = this.#pool.acquire(needed);
    larger.set(batch.buffer.subarray(0, batch.used));
    this.#pool.release(batch.buffer);
    batch.buffer = larger;
  }

  #drop(batch: Batch): void {
    this.#queuedOctets -= batch.used;
    this.#controlOctets -= batch.controlOctets;
    this.#pool.release(batch.buffer);
  }
}
