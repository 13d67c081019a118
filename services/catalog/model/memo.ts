/**
 * Derived values of immutable objects: computed once, and kept as long as the
 * objects live, so that no cleanup is needed.
 *
 * @module
 */

/** @param make Depends on nothing but its argument, which never changes. */
export function memoized<Key extends object, Value>(
  make: (key: Key) => Value,
): (key: Key) => Value {
  const known = new WeakMap<Key, Value>();
  return (key) => {
    let value = known.get(key);
    if (value === undefined) known.set(key, value = make(key));
    return value;
  };
}

/**
 * The same of pairs of objects. A thousand clients come from the same state, go to
 * the same state and ask for the same names; what each of them is sent is a function
 * of such pairs.
 */
export class PairMemo<A extends object, B extends object, V> {
  readonly #known = new WeakMap<A, WeakMap<B, V>>();

  /** @param make Depends on nothing but its arguments, which never change. */
  constructor(private readonly make: (a: A, b: B) => V) {}

  of(a: A, b: B): V {
    let byB = this.#known.get(a);
    if (byB === undefined) this.#known.set(a, byB = new WeakMap());
    let value = byB.get(b);
    if (value === undefined) byB.set(b, value = this.make(a, b));
    return value;
  }
}
