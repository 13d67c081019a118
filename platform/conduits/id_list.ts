/**
 * Things with ids, each at a place of its own for as long as it is listed.
 * Every connection is added and removed: that writes a few numbers, while a
 * `Map` and a `Set` cost ten times as much.
 *
 * @module
 */

/** With ten thousand items most have a slot of their own; 2^14. */
const BUCKETS = 16_384;

const NONE = -1;

/** See the module description. */
export class IdList<T extends { readonly id: string }> {
  /** Holes are in `#free`. */
  readonly #items: (T | undefined)[] = [];
  readonly #free: number[] = [];
  /** The first place of each bucket, and the next one behind each place. */
  readonly #heads = new Int32Array(BUCKETS).fill(NONE);
  #next = new Int32Array(256);
  /** That of each place: an id is read once for each list. */
  #buckets = new Int32Array(256);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Places that have ever been used at a time; all are below. */
  get places(): number {
    return this.#items.length;
  }

  /** The place of the next item. */
  get nextPlace(): number {
    return this.#free.at(-1) ?? this.#items.length;
  }

  /** @returns Its place, which is `nextPlace`. */
  add(item: T): number {
    const place = this.#free.pop() ?? this.#items.length;
    if (place >= this.#next.length) {
      this.#next = twice(this.#next);
      this.#buckets = twice(this.#buckets);
    }
    const bucket = bucketOf(item.id);
    this.#items[place] = item;
    this.#buckets[place] = bucket;
    this.#next[place] = this.#heads[bucket]!;
    this.#heads[bucket] = place;
    this.#size++;
    return place;
  }

  /** @returns Whether it was there. */
  remove(item: T, place: number): boolean {
    if (this.#items[place] !== item) return false;
    this.#items[place] = undefined;
    this.#free.push(place);
    this.#size--;
    const bucket = this.#buckets[place]!;
    const next = this.#next[place]!;
    let at = this.#heads[bucket]!;
    if (at === place) {
      this.#heads[bucket] = next;
      return true;
    }
    while (this.#next[at] !== place) at = this.#next[at]!;
    this.#next[at] = next;
    return true;
  }

  at(place: number): T | undefined {
    return this.#items[place];
  }

  /** Two items may share an id; then either is returned. */
  find(id: string): T | undefined {
    let at = this.#heads[bucketOf(id)]!;
    while (at !== NONE) {
      const item = this.#items[at];
      if (item?.id === id) return item;
      at = this.#next[at]!;
    }
    return undefined;
  }

  /** In no order. */
  *[Symbol.iterator](): Iterator<T> {
    for (const item of this.#items) if (item !== undefined) yield item;
  }

  /** Frees places; only while the list is empty. */
  shrink(): void {
    this.#items.length = 0;
    this.#free.length = 0;
  }
}

function twice(numbers: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const grown = new Int32Array(numbers.length * 2);
  grown.set(numbers);
  return grown;
}

/** No peer knows which ids share a bucket: it could fill one, and slow all. */
const SEED = crypto.getRandomValues(new Int32Array(1))[0]!;

/** The last one: a dial's is looked for in two lists, and put into one. */
let lastId: string | undefined;
let lastBucket = NONE;

/** As in FNV-1a, with a secret start, and mixed into the upper bits. */
function bucketOf(id: string): number {
  if (id === lastId) return lastBucket;
  let hash = SEED;
  for (let at = 0; at < id.length; at++) {
    hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193);
  }
  hash = Math.imul(hash ^ hash >>> 15, 0x2c1b3c6d);
  lastId = id;
  return lastBucket = (hash ^ hash >>> 12) >>> 18;
}
