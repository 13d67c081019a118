/**
 * Buffers for socket reads that are small while waiting and big while reading.
 *
 * A pending read pins its buffer, so an idle connection costs what it waits
 * with; a busy one pays per system call, so it wants to read much at once. The
 * answer is to change the size between reads, from a pool that the whole
 * process shares: memory follows the connections that are busy, not those that
 * exist, and no read ever allocates fresh memory.
 *
 * @module
 */

/** Sizes in octets. Waiting is done in the small ones, moving in the big. */
const CLASSES: readonly number[] = [512, 2 * 1024, 16 * 1024, 128 * 1024];

/** The size of the largest buffer there is. */
export const BUFFER_OCTETS_MAX = 128 * 1024;

/**
 * Octets of free buffers kept per class. A burst may need more; what comes back
 * over this is left to the garbage collector.
 */
const FREE_OCTETS_MAX = 8 * 1024 * 1024;

const free: Uint8Array<ArrayBuffer>[][] = CLASSES.map(() => []);

/** Takes a buffer of the smallest class that holds `octets` (at most the biggest). */
export function takeBuffer(octets: number): Uint8Array<ArrayBuffer> {
  const index = classOf(octets);
  return free[index]!.pop() ?? new Uint8Array(CLASSES[index]!);
}

/** Gives a buffer back. Nobody may touch it any more, the kernel included. */
export function returnBuffer(buffer: Uint8Array<ArrayBuffer>): void {
  const index = CLASSES.indexOf(buffer.length);
  if (index < 0) throw new TypeError("Cannot pool a buffer of another size");
  const kept = free[index]!;
  if (kept.length * buffer.length < FREE_OCTETS_MAX) kept.push(buffer);
}

function classOf(octets: number): number {
  let index = 0;
  while (index < CLASSES.length - 1 && CLASSES[index]! < octets) index++;
  return index;
}

/** The buffer of one reader; see the module description. */
export class ReadBuffer {
  #size = CLASSES[0]!;
  /** Octets of the message under way: reads that filled their buffer. */
  #run = 0;
  #buffer: Uint8Array<ArrayBuffer> | undefined;

  /** The buffer for the next read; the same one until `adapt` or `release`. */
  get buffer(): Uint8Array<ArrayBuffer> {
    return this.#buffer ??= takeBuffer(this.#size);
  }

  /**
   * Chooses the size of the next read after one that gave `octets`.
   *
   * A full buffer means that more is waiting: go up. A short read means that
   * the kernel is drained and the next read will wait: wait in the smallest
   * size that held the last message. The message is counted over several reads,
   * or one of 1024 octets would bounce between sizes for ever.
   */
  adapt(octets: number): void {
    const message = this.#run + octets;
    let size = this.#size;
    if (octets >= size) {
      this.#run = message;
      size = size < 16 * 1024 ? 16 * 1024 : BUFFER_OCTETS_MAX;
    } else {
      this.#run = 0;
      if (message * 4 < size) size = CLASSES[Math.min(classOf(message), 2)]!;
    }
    if (size === this.#size) return;
    this.release();
    this.#size = size;
  }

  /** Gives the memory back for as long as nobody reads. */
  release(): void {
    if (this.#buffer === undefined) return;
    returnBuffer(this.#buffer);
    this.#buffer = undefined;
  }
}
