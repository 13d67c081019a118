/**
 * How many there are of each key. A key of which none is left is forgotten, so
 * that keys of peers, which come and go, fill no memory.
 *
 * @module
 */

export class Tally<Key> {
  readonly #counts = new Map<Key, number>();

  /** Distinct keys. */
  get size(): number {
    return this.#counts.size;
  }

  keys(): Iterable<Key> {
    return this.#counts.keys();
  }

  of(key: Key): number {
    return this.#counts.get(key) ?? 0;
  }

  /**
   * One more, or one less; harmless when there is none.
   *
   * @returns How many there are then.
   */
  add(key: Key, change: 1 | -1 = 1): number {
    const count = this.of(key) + change;
    if (count > 0) this.#counts.set(key, count);
    else this.#counts.delete(key);
    return Math.max(0, count);
  }
}
