/**
 * Buffers for socket reads that are small while waiting and big while reading.
 *
 * A pending read pins its buffer, so an idle connection costs the size of its
 * buffer; a busy one pays per system call, so it should read much at once. The
 * answer is to change the size between reads, from the pool that the whole
 * process shares: memory follows the connections that are busy, not those that
 * exist, and no read ever allocates fresh memory.
 *
 * @module
 */

import {
  BUFFER_BYTES_MAX,
  BUFFER_CLASSES,
  sharedBufferPool,
} from "../../proto/bytes/buffer_pool.ts";

/** A read that fills this is bulk: the next one is as large as can be. */
const BULK_BYTES = 16 * 1024;

/** The buffer of one reader. */
export class ReadBuffer {
  readonly #readBytesMax: number;
  #size = BUFFER_CLASSES[0]!;
  /** Bytes of the message under way: reads that filled their buffer. */
  #run = 0;
  #buffer: Uint8Array<ArrayBuffer> | undefined;
  /** What `#buffer` lies in: the pool knows whole buffers only. */
  #whole: Uint8Array<ArrayBuffer> | undefined;

  /** @param readBytesMax The most that one read may give. */
  constructor(readBytesMax: number = BUFFER_BYTES_MAX) {
    this.#readBytesMax = Math.min(readBytesMax, BUFFER_BYTES_MAX);
  }

  /** The buffer for the next read; the same one until `adapt` or `release`. */
  get buffer(): Uint8Array<ArrayBuffer> {
    return this.#buffer ??= this.#acquire();
  }

  /**
   * Chooses the size of the next read after one that gave `bytes`.
   *
   * A full buffer means that more is waiting: go up. A short read means that
   * the kernel is drained and the next read will wait: wait with the smallest
   * size that held the last message. A message may take several reads, which
   * are added up; otherwise one of 1024 bytes would alternate between two
   * sizes.
   */
  adapt(bytes: number): void {
    const message = this.#run + bytes;
    let size = this.#size;
    if (bytes >= size) {
      this.#run = message;
      size = size < BULK_BYTES ? BULK_BYTES : this.#readBytesMax;
    } else {
      this.#run = 0;
      if (message * 4 < size) size = waitingSize(message);
    }
    if (size === this.#size) return;
    this.release();
    this.#size = size;
  }

  /** Gives the memory back until the next read. */
  release(): void {
    if (this.#whole === undefined) return;
    sharedBufferPool.release(this.#whole);
    this.#whole = this.#buffer = undefined;
  }

  #acquire(): Uint8Array<ArrayBuffer> {
    const whole = this.#whole = sharedBufferPool.acquire(this.#size);
    return whole.length === this.#size ? whole : whole.subarray(0, this.#size);
  }
}

/** The smallest size that holds a message of `bytes`, or bulk. */
function waitingSize(bytes: number): number {
  return BUFFER_CLASSES.find((size) => size >= bytes || size === BULK_BYTES)!;
}
