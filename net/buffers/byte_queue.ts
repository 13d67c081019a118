/**
 * Bytes that have arrived and that nobody has asked for yet.
 *
 * Says when it is full; whoever fills it must stop then, and may overrun it by
 * what was under way.
 *
 * @module
 */

/**
 * What a chunk counts besides its bytes: the memory around it. A peer that
 * sends one byte per TLS record would otherwise get a hundred times the memory
 * that the limit says.
 */
export const CHUNK_COST_BYTES = 128;

/** See the module description. */
export class ByteQueue {
  readonly #limitBytes: number;
  #chunks: Uint8Array[] = [];
  /** Of `#chunks`: how many were taken, and how much of the next one. */
  #taken = 0;
  #offset = 0;
  #weight = 0;

  /** @param limitBytes From where on the queue is full. */
  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get isEmpty(): boolean {
    return this.#chunks.length === 0;
  }

  /** Whether no more should be put in for now. */
  get isFull(): boolean {
    return this.#weight >= this.#limitBytes;
  }

  /** Keeps `chunk`, which belongs to the queue from now on. */
  push(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    this.#chunks.push(chunk);
    this.#weight += chunk.length + CHUNK_COST_BYTES;
  }

  /** Moves bytes into `into`; @returns how many, 0 when there are none. */
  take(into: Uint8Array): number {
    let count = 0;
    while (count < into.length && this.#taken < this.#chunks.length) {
      const chunk = this.#chunks[this.#taken]!;
      const end = Math.min(chunk.length, this.#offset + into.length - count);
      into.set(chunk.subarray(this.#offset, end), count);
      count += end - this.#offset;
      this.#offset = end;
      if (end === chunk.length) this.#next();
    }
    this.#weight -= count;
    return count;
  }

  /** Forgets everything. */
  clear(): void {
    this.#chunks = [];
    this.#taken = this.#offset = this.#weight = 0;
  }

  /** Moving all chunks up for each one that leaves would cost their square. */
  #next(): void {
    this.#weight -= CHUNK_COST_BYTES;
    this.#offset = 0;
    this.#taken++;
    if (this.#taken < this.#chunks.length && this.#taken < 64) return;
    this.#chunks.splice(0, this.#taken);
    this.#taken = 0;
  }
}
