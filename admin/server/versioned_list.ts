/**
 * A list that is looked at again and again: which items are other ones since a
 * moment, and which are gone. Kept once, however many look.
 *
 * @module
 */

interface Kept<T> {
  readonly item: T;
  /** When it was as it is for the first time. */
  readonly version: number;
}

/** Items that are gone are told for so many versions; then all is told anew. */
export const GONE_VERSIONS = 60;

/** What is other. */
export interface Changes {
  /** Whether `changed` is all that there is. */
  readonly isWhole: boolean;
  /** Keys of items that are other, or new. */
  readonly changed: readonly string[];
  readonly gone: readonly string[];
}

/** See the module description. */
export class VersionedList<T> {
  #items = new Map<string, Kept<T>>();
  readonly #gone = new Map<string, number>();
  #version = 0;

  /** @param isSame Whether nobody needs to be told of a change. */
  constructor(private readonly isSame: (one: T, other: T) => boolean) {}

  get(key: string): T | undefined {
    return this.#items.get(key)?.item;
  }

  /** From now on these are there. */
  update(items: Iterable<readonly [key: string, item: T]>): void {
    const version = ++this.#version;
    const before = this.#items;
    const now = new Map<string, Kept<T>>();
    for (const [key, item] of items) {
      const known = before.get(key);
      before.delete(key);
      this.#gone.delete(key);
      now.set(
        key,
        known !== undefined && this.isSame(known.item, item)
          ? known
          : { item, version },
      );
    }
    for (const key of before.keys()) this.#gone.set(key, version);
    for (const [key, goneAt] of this.#gone) {
      if (goneAt <= version - GONE_VERSIONS) this.#gone.delete(key);
    }
    this.#items = now;
  }

  /** Since then; 0 for who knows nothing yet. */
  since(version: number): Changes {
    const isWhole = version === 0 || version < this.#version - GONE_VERSIONS;
    const changed: string[] = [];
    for (const [key, kept] of this.#items) {
      if (isWhole || kept.version > version) changed.push(key);
    }
    const gone: string[] = [];
    if (!isWhole) {
      for (const [key, goneAt] of this.#gone) {
        if (goneAt > version) gone.push(key);
      }
    }
    return { isWhole, changed, gone };
  }

  /** Grows with each update. */
  get version(): number {
    return this.#version;
  }

  /** Nobody looks any more. */
  clear(): void {
    this.#items.clear();
    this.#gone.clear();
    this.#version = 0;
  }
}
