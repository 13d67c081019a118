/**
 * The books of the buffer pool that all connections of a process share: who
 * borrows must give back, once, and whole.
 *
 * @module
 */

import { sharedBufferPool } from "../../proto/bytes/buffer_pool.ts";

/** What a buffer is filled with when it comes back, to find late readers. */
const STALE = 0xdd;

/** See the module description. Watches from its making until `close`. */
export class PoolAudit {
  readonly #lent = new Set<ArrayBufferLike>();
  #bytes = 0;

  /** @param complain Called for what was given back twice or never borrowed. */
  constructor(private readonly complain: (what: string) => void) {
    const pool = sharedBufferPool;
    const { acquire, release } = Object.getPrototypeOf(pool) as typeof pool;
    pool.acquire = (bytesMin) => {
      const buffer = acquire.call(pool, bytesMin);
      this.#lent.add(buffer.buffer);
      this.#bytes += buffer.length;
      return buffer;
    };
    pool.release = (buffer) => {
      if (!this.#lent.delete(buffer.buffer)) {
        // Released into the pool it would be lent to two at once.
        return this.complain("a buffer was given back that was not lent");
      }
      this.#bytes -= buffer.length;
      buffer.fill(STALE);
      release.call(pool, buffer);
    };
  }

  /** Bytes that are lent now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Buffers that are lent now, but for these. */
  buffersBut(abandoned: readonly ArrayBufferLike[]): number {
    for (const buffer of abandoned) this.#lent.delete(buffer);
    return this.#lent.size;
  }

  /** The pool is as it was, and what is lent is forgotten. */
  close(): void {
    // Own properties in front of the methods of the class.
    Reflect.deleteProperty(sharedBufferPool, "acquire");
    Reflect.deleteProperty(sharedBufferPool, "release");
  }
}
