/**
 * Bytes on their way from one conduit to a slower one: a FIFO that is written
 * by copy and read in long runs.
 *
 * It is made of borrowed blocks, so a queue that fills and drains many times a
 * second makes no memory, and an empty one owns none.
 *
 * @module
 */

import {
  BUFFER_BYTES_MAX,
  type BufferPool,
  sharedBufferPool,
} from "../bytes/buffer_pool.ts";

export class PooledQueue {
  // Invariant: every block but the last is full; start lies in the first block,
  // end in the last; bytes = what lies between them. No blocks when empty.
  #blocks: Uint8Array<ArrayBuffer>[] = [];
  #start = 0;
  #end = 0;
  #bytes = 0;

  /** @param pool Lends the blocks. */
  constructor(private readonly pool: BufferPool = sharedBufferPool) {}

  /** Bytes waiting. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Copies `chunk` to the end of the queue. */
  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length) {
      const block = this.#withRoom(chunk.length - at);
      const count = Math.min(block.length - this.#end, chunk.length - at);
      block.set(chunk.subarray(at, at + count), this.#end);
      this.#end += count;
      this.#bytes += count;
      at += count;
    }
  }

  /**
   * The longest run at the front that lies in one piece; empty only when
   * nothing waits. A view that is valid until the next call.
   */
  peek(): Uint8Array {
    const first = this.#blocks[0];
    if (first === undefined) return NO_BYTES;
    return first.subarray(this.#start, this.#firstEnd(first));
  }

  /**
   * Removes `count` bytes from the front.
   *
   * @throws {RangeError} If there are fewer.
   */
  drop(count: number): void {
    if (!(count >= 0 && count <= this.#bytes)) {
      throw new RangeError(
        `Cannot drop ${count} bytes: ${this.#bytes} are queued`,
      );
    }
    this.#bytes -= count;
    if (this.#bytes === 0) return this.clear();
    let left = count;
    while (left > 0) {
      const first = this.#blocks[0]!;
      const run = Math.min(left, this.#firstEnd(first) - this.#start);
      this.#start += run;
      left -= run;
      if (this.#start === first.length) {
        this.pool.release(first);
        this.#blocks.shift();
        this.#start = 0;
      }
    }
  }

  /** Removes everything. */
  clear(): void {
    for (const block of this.#blocks) this.pool.release(block);
    this.#blocks = [];
    this.#start = 0;
    this.#end = 0;
    this.#bytes = 0;
  }

  #firstEnd(first: Uint8Array): number {
    return this.#blocks.length === 1 ? this.#end : first.length;
  }

  /** The last block, or a new one when that is full. */
  #withRoom(count: number): Uint8Array<ArrayBuffer> {
    const last = this.#blocks[this.#blocks.length - 1];
    if (last !== undefined && this.#end < last.length) return last;
    // As large as the present queue: small queues stay small, and a long queue
    // does not consist of a thousand small blocks.
    const wanted = Math.min(Math.max(count, this.#bytes), BUFFER_BYTES_MAX);
    const block = this.pool.acquire(wanted);
    this.#blocks.push(block);
    this.#end = 0;
    return block;
  }
}

const NO_BYTES = new Uint8Array(0);
