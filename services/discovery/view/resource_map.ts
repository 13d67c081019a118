/**
 * All resources of one kind, by name: a map that never changes, and whose next
 * version costs what changed.
 *
 * Names are spread over buckets. The next map copies the buckets with changes and
 * shares the others, so the difference of two maps is found in few buckets, and a
 * change among twenty thousand services copies some eighty names.
 *
 * The order means nothing, and depends on the names alone: that of buckets, and by
 * name within each.
 *
 * @module
 */

import { createHash } from "node:crypto";
import { fnv1a } from "../../../proto/bytes/fnv1a.ts";
import { memoized } from "../../catalog/model/memo.ts";
import type { Resource } from "../../../proto/xds/resource.ts";

/**
 * A version made of resources and of nothing else: it survives a restart of the
 * server, and differs for different content. 128 bits, as hexadecimal digits.
 */
export function contentVersion(resources: Iterable<Resource>): string {
  const lines = Array.from(
    resources,
    ({ kind, name, version }) => `${kind}\0${name}\0${version}\n`,
  );
  return digest(lines.sort());
}

function digest(texts: readonly string[]): string {
  return createHash("sha256").update(texts.join("")).digest("hex").slice(0, 32);
}

/** A power of two: some hundred names in each, of the largest catalogs. */
const BUCKETS = 256;

type Bucket = ReadonlyMap<string, Resource>;

const NO_BUCKET: Bucket = new Map();
const ALL_EMPTY: readonly Bucket[] = Array.from(
  { length: BUCKETS },
  () => NO_BUCKET,
);

/** See the module description. */
export class ResourceMap implements ReadonlyMap<string, Resource> {
  static readonly EMPTY = new ResourceMap(ALL_EMPTY, 0);

  constructor(
    private readonly buckets: readonly Bucket[],
    readonly size: number,
  ) {}

  get(name: string): Resource | undefined {
    return this.buckets[bucketOf(name)]!.get(name);
  }

  has(name: string): boolean {
    return this.buckets[bucketOf(name)]!.has(name);
  }

  /** Made of all resources; costs the buckets that no other map has. */
  get contentVersion(): string {
    return digest(this.buckets.map(versionOfBucket));
  }

  /** Names whose resource is new, differs or is gone. */
  changedSince(before: ResourceMap): Set<string> {
    const changed = new Set<string>();
    for (let index = 0; index < BUCKETS; index++) {
      const old = before.buckets[index]!;
      const now = this.buckets[index]!;
      if (old !== now) noteChanges(old, now, changed);
    }
    return changed;
  }

  *entries(): MapIterator<[string, Resource]> {
    for (const resource of this.values()) yield [resource.name, resource];
  }

  *keys(): MapIterator<string> {
    for (const { name } of this.values()) yield name;
  }

  *values(): MapIterator<Resource> {
    for (const bucket of this.buckets) yield* sorted(bucket);
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
    for (const resource of this.values()) tell(resource, resource.name, this);
  }

  /** The next map, to be written. */
  draft(): ResourceMapDraft {
    return new ResourceMapDraft(this, this.buckets);
  }
}

/** The next map, while it is written. */
export class ResourceMapDraft {
  #base: ResourceMap;
  readonly #buckets: Bucket[];
  #size: number;
  /** Copied buckets, which no map has yet. */
  readonly #own = new Map<number, Map<string, Resource>>();

  constructor(base: ResourceMap, buckets: readonly Bucket[]) {
    this.#base = base;
    this.#buckets = [...buckets];
    this.#size = base.size;
  }

  /** @param resource Absent: it is removed. */
  set(name: string, resource: Resource | undefined): void {
    const index = bucketOf(name);
    const old = this.#buckets[index]!.get(name);
    if (old === resource) return;
    let bucket = this.#own.get(index);
    if (bucket === undefined) {
      this.#own.set(index, bucket = new Map(this.#buckets[index]));
      this.#buckets[index] = bucket;
    }
    if (resource === undefined) bucket.delete(name);
    else bucket.set(name, resource);
    this.#size += Number(resource !== undefined) - Number(old !== undefined);
  }

  /**
   * The map as it was written, or the last one if nothing was. Later writes are
   * for the next map.
   */
  finish(): ResourceMap {
    if (this.#own.size === 0) return this.#base;
    this.#own.clear();
    return this.#base = new ResourceMap([...this.#buckets], this.#size);
  }
}

const versionOfBucket = memoized((bucket: Bucket) =>
  bucket.size === 0 ? "" : contentVersion(bucket.values())
);

const sorted = memoized((bucket: Bucket) =>
  [...bucket.values()].sort((a, b) => a.name < b.name ? -1 : 1)
);

function bucketOf(name: string): number {
  const hash = fnv1a(name);
  return (hash ^ hash >>> 16) & (BUCKETS - 1);
}

/**
 * Adds names whose resource is new, differs or is gone. A resource that was
 * generated again with the same content does not differ.
 */
export function noteChanges(
  before: Bucket,
  after: Bucket,
  changed: Set<string>,
): void {
  for (const [name, resource] of after) {
    const old = before.get(name);
    if (old !== resource && old?.version !== resource.version) {
      changed.add(name);
    }
  }
  for (const name of before.keys()) {
    if (!after.has(name)) changed.add(name);
  }
}
