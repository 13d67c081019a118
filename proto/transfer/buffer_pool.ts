/**
 * Buffers that are used again, by powers of two.
 *
 * A sink that lags a little makes its queue fill and drain many times a second;
 * fresh memory each time costs several times the copy itself.
 *
 * @module
 */

/** Smallest buffer; most queues hold the rest of one small read. */
const BUFFER_OCTETS_MIN = 4_096;
/** Larger buffers are rare and go back to the collector. */
const POOLED_OCTETS_MAX = 1_048_576;
/** What the pool keeps for all conduits of the process together. */
const POOL_OCTETS_MAX = 8 * 1_048_576;

/** See the module description. */
export class BufferPool {
  readonly #free = new Map<number, Uint8Array[]>();
  #octets = 0;

  /** Octets kept for the next one who asks. */
  get octets(): number {
    return this.#octets;
  }

  /** A buffer of at least `octets`, with anything in it. */
  take(octets: number): Uint8Array {
    const capacity = capacityFor(octets);
    const buffer = this.#free.get(capacity)?.pop();
    if (buffer === undefined) return new Uint8Array(capacity);
    this.#octets -= capacity;
    return buffer;
  }

  /** Takes `buffer` back; nobody may hold a view of it any more. */
  give(buffer: Uint8Array): void {
    const capacity = buffer.length;
    if (capacity > POOLED_OCTETS_MAX) return;
    if (this.#octets + capacity > POOL_OCTETS_MAX) return;
    const free = this.#free.get(capacity);
    if (free === undefined) this.#free.set(capacity, [buffer]);
    else free.push(buffer);
    this.#octets += capacity;
  }
}

function capacityFor(octets: number): number {
  let capacity = BUFFER_OCTETS_MIN;
  while (capacity < octets) capacity *= 2;
  return capacity;
}
