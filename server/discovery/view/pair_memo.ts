/**
 * What was made of two objects, made once.
 *
 * A thousand clients come from the same state, go to the same state and ask for
 * the same names; what each of them is told is a function of such pairs. It is
 * known for as long as both objects are, so there is nothing to be cleared.
 *
 * @module
 */

/** See the module description. */
export class PairMemo<A extends object, B extends object, V> {
  readonly #make: (a: A, b: B) => V;
  readonly #known = new WeakMap<A, WeakMap<B, V>>();

  /** @param make Depends on nothing but its arguments, which never change. */
  constructor(make: (a: A, b: B) => V) {
    this.#make = make;
  }

  of(a: A, b: B): V {
    let byB = this.#known.get(a);
    if (byB === undefined) this.#known.set(a, byB = new WeakMap());
    let value = byB.get(b);
    if (value === undefined) byB.set(b, value = this.#make(a, b));
    return value;
  }
}
