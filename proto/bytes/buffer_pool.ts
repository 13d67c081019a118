/**
 * Byte buffers that are reused instead of allocated.
 *
 * A fresh 64 KiB buffer costs more than the work that is done with it, so code
 * that reads or writes in bulk borrows one here and returns it. The pool does
 * not know its borrowers, and clears nothing.
 *
 * @module
 */

/**
 * The sizes that exist, in bytes, ascending. Idle connections wait in the
 * small ones; the largest holds two frames of 64 KiB.
 */
export const BUFFER_CLASSES: readonly number[] = [
  512,
  2 * 1024,
  16 * 1024,
  128 * 1024,
];

/** The largest class. */
export const BUFFER_BYTES_MAX = 128 * 1024;

/**
 * Bytes of free buffers kept per class. Above it they are left to the garbage
 * collector, so that a burst of connections does not pin its peak. The value is
 * what 64 connections in bulk borrow and return in a moment: a quarter of it
 * made them allocate 100 MB each second.
 */
const KEPT_BYTES_PER_CLASS = 32 * 1024 * 1024;

/** Lends buffers of a few fixed sizes. */
export class BufferPool {
  readonly #free: Uint8Array<ArrayBuffer>[][] = BUFFER_CLASSES.map(() => []);
  readonly #keptMax: readonly number[];

  /** @param keptBytes Free bytes to keep per class. */
  constructor(keptBytes: number = KEPT_BYTES_PER_CLASS) {
    this.#keptMax = BUFFER_CLASSES.map((size) => Math.floor(keptBytes / size));
  }

  /**
   * Lends a buffer of the smallest class that holds `bytesMin`. Its content is
   * the last borrower's. Above {@linkcode BUFFER_BYTES_MAX} it is allocated for
   * this call and not kept.
   */
  acquire(bytesMin: number): Uint8Array<ArrayBuffer> {
    const index = classOf(bytesMin);
    return this.#free[index]?.pop() ??
      new Uint8Array(BUFFER_CLASSES[index] ?? bytesMin);
  }

  /** Takes a whole buffer back; the borrower must not touch it afterwards. */
  release(buffer: Uint8Array<ArrayBuffer>): void {
    const index = BUFFER_CLASSES.indexOf(buffer.length);
    const free = this.#free[index];
    if (free !== undefined && free.length < this.#keptMax[index]!) {
      free.push(buffer);
    }
  }

  /** Leaves all free buffers to the garbage collector. */
  drop(): void {
    for (const free of this.#free) free.length = 0;
  }
}

/** The pool that connections share unless they are given another. */
export const sharedBufferPool: BufferPool = new BufferPool();

function classOf(bytes: number): number {
  let index = 0;
  while (index < BUFFER_CLASSES.length && BUFFER_CLASSES[index]! < bytes) {
    index++;
  }
  return index;
}
