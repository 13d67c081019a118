/**
 * Results of pairs of objects, computed once.
 *
 * A thousand clients come from the same state, go to the same state and ask for
 * the same names; what each of them is sent is a function of such pairs. A result
 * is kept for as long as both objects live, so nothing has to be cleared.
 *
 * @module
 */

/** See the module description. */
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
