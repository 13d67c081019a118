/**
 * A collection's objects as they were last seen, and the changes of events.
 *
 * Each object carries the version of its last change. An event that is not
 * newer changes nothing, whether it came twice or late.
 *
 * @module
 */

import { setNewest } from "../../proto/sync/newest.ts";
import type { KubernetesObject } from "./objects.ts";

/** One object's news. */
export type ObjectChange<T> =
  | { readonly type: "added"; readonly object: T }
  | { readonly type: "updated"; readonly object: T; readonly previous: T }
  /** The last version. */
  | { readonly type: "removed"; readonly object: T };

/**
 * How many removed objects are remembered, so that a late event does not bring
 * them back.
 */
export const OBJECTS_REMOVED_MAX = 1_000;

export class ObjectCopy<T extends KubernetesObject> {
  readonly #objects = new Map<string, T>();
  /** Versions of removed objects, oldest first. */
  readonly #removed = new Map<string, string>();

  /** By `namespace/name`. */
  get objects(): ReadonlyMap<string, T> {
    return this.#objects;
  }

  /** Makes the copy equal to a list. */
  replace(items: readonly T[]): readonly ObjectChange<T>[] {
    const changes: ObjectChange<T>[] = [];
    const left = new Map(this.#objects);
    this.#removed.clear();
    for (const object of items) {
      const key = objectKeyOf(object);
      const previous = left.get(key);
      left.delete(key);
      this.#objects.set(key, object);
      if (previous === undefined) changes.push({ type: "added", object });
      else if (versionOf(previous) !== versionOf(object)) {
        changes.push({ type: "updated", object, previous });
      }
    }
    for (const [key, object] of left) {
      this.#objects.delete(key);
      changes.push({ type: "removed", object });
    }
    return changes;
  }

  /** @returns `undefined` when the event is not new. */
  put(object: T): ObjectChange<T> | undefined {
    const key = objectKeyOf(object);
    const previous = this.#objects.get(key);
    const known = previous === undefined
      ? this.#removed.get(key)
      : versionOf(previous);
    if (known !== undefined && !isNewer(versionOf(object), known)) {
      return undefined;
    }
    this.#removed.delete(key);
    this.#objects.set(key, object);
    return previous === undefined
      ? { type: "added", object }
      : { type: "updated", object, previous };
  }

  /** @param object Its version is that of the removal. */
  remove(object: T): ObjectChange<T> | undefined {
    const key = objectKeyOf(object);
    const previous = this.#objects.get(key);
    // A removal may carry the version of the last change, so equal is enough.
    const known = previous === undefined
      ? this.#removed.get(key)
      : versionOf(previous);
    const isLate = known !== undefined && isNewer(known, versionOf(object));
    if (isLate) return undefined;
    this.#objects.delete(key);
    setNewest(this.#removed, key, versionOf(object), OBJECTS_REMOVED_MAX);
    return previous && { type: "removed", object: previous };
  }
}

/** `namespace/name`; `name` alone for cluster-wide objects. */
export function objectKeyOf({ metadata }: KubernetesObject): string {
  const { namespace, name = "" } = metadata;
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/**
 * Whether version `a` is later than `b`. Versions that are not decimal numbers
 * cannot be compared: then all that can be said is whether they differ.
 */
export function isNewer(a: string, b: string): boolean {
  if (!isNumber(a) || !isNumber(b)) return a !== b;
  return a.length === b.length ? a > b : a.length > b.length;
}

function isNumber(version: string): boolean {
  return /^[1-9]\d*$/.test(version);
}

function versionOf({ metadata }: KubernetesObject): string {
  return metadata.resourceVersion ?? "";
}
