/**
 * Plain data: objects and arrays of texts, numbers and booleans, as the catalog
 * holds them.
 *
 * @module
 */

/** Whether two values say the same. */
export function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (!isObject(a) || !isObject(b) || Array.isArray(a) !== Array.isArray(b)) {
    return false;
  }
  // Lists have ten thousand items, and keys of these would be texts.
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length &&
      a.every((item, index) => isSame(item, b[index]));
  }
  // Lists of keys would be most of what comparing thousands of objects costs.
  let count = 0;
  for (const key in a) {
    if (!Object.hasOwn(b, key) || !isSame(a[key], b[key])) return false;
    count++;
  }
  for (const _ in b) count--;
  return count === 0;
}

/** Keys whose value is new, another object, or gone. */
export function* changedKeys(
  before: ReadonlyMap<string, unknown>,
  after: ReadonlyMap<string, unknown>,
): Iterable<string> {
  if (before === after) return;
  for (const [key, now] of after) if (before.get(key) !== now) yield key;
  for (const key of before.keys()) if (!after.has(key)) yield key;
}

/** Makes a value, and all that is in it, unchangeable. */
export function freeze<T>(value: T): T {
  if (isObject(value) && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) freeze(inner);
  }
  return value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
