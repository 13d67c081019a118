/**
 * Octets on their way from one conduit to a slower one: a FIFO that is written
 * by copy and read as one run.
 *
 * An empty queue owns no memory, so an idle or fast conduit pays nothing.
 *
 * @module
 */

import { BufferPool } from "./buffer_pool.ts";

/** All queues of the process share one pool: stalls come and go in turns. */
const pool = new BufferPool();

/** See the module description. */
export class OctetQueue {
  // Invariant: 0 <= start <= end <= buffer.length; empty means no buffer.
  #buffer: Uint8Array | undefined;
  #start = 0;
  #end = 0;

  /** Octets waiting. */
  get octets(): number {
    return this.#end - this.#start;
  }

  /** Copies `chunk` behind what is waiting. */
  push(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    const buffer = this.#withRoomFor(chunk.length);
    buffer.set(chunk, this.#end);
    this.#end += chunk.length;
  }

  /** Everything that waits, as a view that is valid until the next call. */
  peek(): Uint8Array {
    return this.#buffer === undefined
      ? NO_OCTETS
      : this.#buffer.subarray(this.#start, this.#end);
  }

  /**
   * Removes `count` octets from the front.
   *
   * @throws {RangeError} If there are fewer.
   */
  drop(count: number): void {
    if (!(count >= 0 && count <= this.octets)) {
      throw new RangeError(
        `Cannot drop ${count} octets: ${this.octets} are queued`,
      );
    }
    this.#start += count;
    if (this.#start === this.#end) this.clear();
  }

  /** Removes everything. */
  clear(): void {
    if (this.#buffer !== undefined) pool.give(this.#buffer);
    this.#buffer = undefined;
    this.#start = 0;
    this.#end = 0;
  }

  #withRoomFor(count: number): Uint8Array {
    const buffer = this.#buffer;
    if (buffer === undefined) {
      this.#buffer = pool.take(count);
      return this.#buffer;
    }
    if (this.#end + count <= buffer.length) return buffer;
    const wanted = this.octets + count;
    if (wanted <= buffer.length / 2) {
      // Half of the buffer has gone out since the last time, so moving the rest
      // to the front costs each octet less than one copy.
      buffer.copyWithin(0, this.#start, this.#end);
    } else {
      this.#buffer = pool.take(Math.max(wanted, 2 * this.octets));
      this.#buffer.set(buffer.subarray(this.#start, this.#end));
      pool.give(buffer);
    }
    this.#end -= this.#start;
    this.#start = 0;
    return this.#buffer!;
  }
}

const NO_OCTETS = new Uint8Array(0);
