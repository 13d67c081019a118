/**
 * All resources of one kind, by name: a map that never changes, and whose next
 * version costs what changed.
 *
 * Names are spread over buckets. The next map copies the buckets with changes and
 * shares the others, so the difference of two maps is found in few buckets, and a
 * change among twenty thousand services copies some eighty names.
 *
 * The order is that of services, and within a service that of its claims, however
 * they were added; it is computed at first use, or in steps before that.
 *
 * @module
 */

import { fnv1a } from "../../../proto/bytes/fnv1a.ts";
import { memoized } from "../../catalog/model/memo.ts";
import type { Resource } from "../../../proto/xds/resource.ts";

/** Four numbers of 32 bits, and how many resources they are of. */
export interface ContentSum {
  readonly words: Uint32Array;
  readonly count: number;
}

/** Odd, and unlike each other: the fractions of square roots of primes. */
const FACTORS = [0x6a09e667, 0xbb67ae85, 0x3c6ef373, 0xa54ff53b] as const;

const WORDS = FACTORS.length;

const NOTHING: ContentSum = Object.freeze({
  words: new Uint32Array(WORDS),
  count: 0,
});

/** The sum of resources. */
export function sumOf(resources: Iterable<Resource>): ContentSum {
  return total(function* () {
    for (const resource of resources) yield sumOfOne(resource);
  });
}

/** The sum of sums, which is the sum of all later resources. */
export function total(sums: () => Iterable<ContentSum>): ContentSum {
  let words: Uint32Array | undefined;
  let count = 0;
  for (const sum of sums()) {
    words ??= new Uint32Array(WORDS);
    for (let at = 0; at < WORDS; at++) words[at]! += sum.words[at]!;
    count += sum.count;
  }
  return words === undefined ? NOTHING : { words, count };
}

/** As a version: 32 hexadecimal digits. */
export function contentVersion({ words, count }: ContentSum): string {
  let text = "";
  for (let at = 0; at < WORDS; at++) {
    const word = mixed(words[at]! ^ Math.imul(count + 1, FACTORS[at]!));
    text += word.toString(16).padStart(8, "0");
  }
  return text;
}

/** Kept, because buckets of the same resources are made again. */
const sumOfOne = memoized(({ kind, name, version }: Resource): ContentSum => {
  const words = new Uint32Array(FACTORS);
  for (const text of [kind, name, version]) read(text, words);
  for (let at = 0; at < WORDS; at++) words[at] = mixed(words[at]!);
  return { words, count: 1 };
});

/** FNV-1a, four times over. */
function read(text: string, words: Uint32Array): void {
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    for (let word = 0; word < WORDS; word++) {
      words[word] = Math.imul(words[word]! ^ unit, 0x01000193 + 2 * word);
    }
  }
  for (let word = 0; word < WORDS; word++) {
    words[word] = Math.imul(words[word]! ^ text.length, 0x85ebca6b);
  }
}

/** So that each bit depends on each: the end of MurmurHash3. */
function mixed(word: number): number {
  let hash = word;
  hash = Math.imul(hash ^ hash >>> 16, 0x85ebca6b);
  hash = Math.imul(hash ^ hash >>> 13, 0xc2b2ae35);
  return (hash ^ hash >>> 16) >>> 0;
}

/** A resource, and its place in the order. */
export interface Placed {
  readonly resource: Resource;
  /** `namespace/name`. */
  readonly service: string;
  /** Among those of the service. */
  readonly order: number;
}

/** A power of two: some hundred names in each, of the largest catalogs. */
const BUCKETS = 256;

/** Services that are put into their order in one step. */
const STEP = 256;

type Bucket = ReadonlyMap<string, Placed>;

const NO_BUCKET: Bucket = new Map();
const ALL_EMPTY: readonly Bucket[] = Array.from(
  { length: BUCKETS },
  () => NO_BUCKET,
);

/** See the module description. */
export class ResourceMap implements ReadonlyMap<string, Resource> {
  static readonly EMPTY = new ResourceMap(ALL_EMPTY, 0, []);
  #ordered: readonly Resource[] | undefined;

  /** @param services All services that resources are of, in their order. */
  constructor(
    private readonly buckets: readonly Bucket[],
    readonly size: number,
    private readonly services: readonly string[],
  ) {}

  get(name: string): Resource | undefined {
    return this.buckets[bucketOf(name)]!.get(name)?.resource;
  }

  has(name: string): boolean {
    return this.buckets[bucketOf(name)]!.has(name);
  }

  /** The sum of all resources; costs the buckets that no other map has. */
  contentSum(): ContentSum {
    const buckets = this.buckets;
    return total(function* () {
      for (const bucket of buckets) {
        if (bucket.size > 0) yield sumOfBucket(bucket);
      }
    });
  }

  /** Names whose resource is new, differs or is gone. */
  changedSince(before: ResourceMap): Set<string> {
    const changed = new Set<string>();
    for (let index = 0; index < BUCKETS; index++) {
      const old = before.buckets[index]!;
      const now = this.buckets[index]!;
      if (old !== now) compare(old, now, changed);
    }
    return changed;
  }

  *entries(): MapIterator<[string, Resource]> {
    for (const resource of this.#inOrder) yield [resource.name, resource];
  }

  *keys(): MapIterator<string> {
    for (const { name } of this.#inOrder) yield name;
  }

  values(): MapIterator<Resource> {
    return this.#inOrder.values();
  }

  [Symbol.iterator](): MapIterator<[string, Resource]> {
    return this.entries();
  }

  forEach(
    tell: (
      resource: Resource,
      name: string,
      map: ReadonlyMap<string, Resource>,
    ) => void,
  ): void {
    for (const resource of this.#inOrder) tell(resource, resource.name, this);
  }

  /** The next map, to be written. */
  draft(): ResourceMapDraft {
    return new ResourceMapDraft(this, this.buckets);
  }

  /** Computes the order in steps, before it is used. */
  *ordering(): Generator<void, void, void> {
    if (this.#ordered !== undefined) return;
    const byService = new Map<string, Placed[]>();
    for (const bucket of this.buckets) {
      for (const placed of bucket.values()) {
        const list = byService.get(placed.service);
        if (list === undefined) byService.set(placed.service, [placed]);
        else list.push(placed);
      }
      if (bucket.size > 0) yield;
    }
    const ordered: Resource[] = [];
    let count = 0;
    for (const service of this.services) {
      const list = byService.get(service) ?? [];
      if (list.length > 1) list.sort((a, b) => a.order - b.order);
      for (const { resource } of list) ordered.push(resource);
      if (++count % STEP === 0) yield;
    }
    this.#ordered = ordered;
  }

  get #inOrder(): readonly Resource[] {
    const steps = this.ordering();
    while (!steps.next().done);
    return this.#ordered!;
  }
}

/** The next map, while it is written. */
export class ResourceMapDraft {
  #base: ResourceMap;
  readonly #buckets: Bucket[];
  #size: number;
  /** Copied buckets, which no map has yet. */
  readonly #own = new Map<number, Map<string, Placed>>();
  /** The entries before, of names that were written. */
  readonly #before = new Map<string, Placed | undefined>();

  constructor(base: ResourceMap, buckets: readonly Bucket[]) {
    this.#base = base;
    this.#buckets = [...buckets];
    this.#size = base.size;
  }

  /** @param placed Absent: the resource is removed. */
  set(name: string, placed: Placed | undefined): void {
    const index = bucketOf(name);
    const old = this.#buckets[index]!.get(name);
    if (old === placed) return;
    // In an empty map every name is new.
    if (this.#base.size > 0 && !this.#before.has(name)) {
      this.#before.set(name, old);
    }
    let bucket = this.#own.get(index);
    if (bucket === undefined) {
      this.#own.set(index, bucket = new Map(this.#buckets[index]));
      this.#buckets[index] = bucket;
    }
    if (placed === undefined) bucket.delete(name);
    else bucket.set(name, placed);
    this.#size += Number(placed !== undefined) - Number(old !== undefined);
  }

  /**
   * The map as it was written, or the last one if the content is the same. Later
   * writes are for the next map.
   *
   * @param services All services that resources are of, in their order.
   */
  finish(services: readonly string[]): ResourceMap {
    if (this.#own.size === 0) return this.#base;
    this.#own.clear();
    const isSame = this.#base.size > 0 && this.#isAsBefore();
    this.#before.clear();
    if (!isSame) {
      this.#base = new ResourceMap([...this.#buckets], this.#size, services);
    }
    return this.#base;
  }

  #isAsBefore(): boolean {
    for (const [name, old] of this.#before) {
      const now = this.#buckets[bucketOf(name)]!.get(name);
      const isSame = now?.resource === old?.resource &&
        now?.service === old?.service && now?.order === old?.order;
      if (!isSame) return false;
    }
    return true;
  }
}

const sumOfBucket = memoized((bucket: Bucket) =>
  sumOf(bucket.values().map(({ resource }) => resource))
);

function bucketOf(name: string): number {
  const hash = fnv1a(name);
  return (hash ^ hash >>> 16) & (BUCKETS - 1);
}

function compare(before: Bucket, after: Bucket, changed: Set<string>): void {
  for (const [name, { resource }] of after) {
    const old = before.get(name)?.resource;
    if (old !== resource && old?.version !== resource.version) {
      changed.add(name);
    }
  }
  for (const name of before.keys()) {
    if (!after.has(name)) changed.add(name);
  }
}
