/**
 * Names in their order, kept so while they come and go one by one.
 *
 * @module
 */

/** See the module description. */
export class SortedNames {
  #names: string[] = [];
  /** Somebody has the array: the next change copies it. */
  #isShared = false;

  /** All of them; the same array while they are the same. */
  get all(): readonly string[] {
    this.#isShared = true;
    return this.#names;
  }

  add(name: string): void {
    const at = this.#placeOf(name);
    if (this.#names[at] === name) return;
    this.#own();
    this.#names.splice(at, 0, name);
  }

  remove(name: string): void {
    const at = this.#placeOf(name);
    if (this.#names[at] !== name) return;
    this.#own();
    this.#names.splice(at, 1);
  }

  #own(): void {
    if (!this.#isShared) return;
    this.#names = [...this.#names];
    this.#isShared = false;
  }

  /** Of the first name that is not before `name`. */
  #placeOf(name: string): number {
    return firstAt(this.#names.length, (at) => this.#names[at]! >= name);
  }
}

/** The first of `count` places that is one; `count` if none is. */
export function firstAt(
  count: number,
  is: (at: number) => boolean,
): number {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = low + high >>> 1;
    if (is(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
