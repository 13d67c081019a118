/**
 * Names of one kind that a client wants: those that its owner chose, those that
 * other resources need, and perhaps the wildcard.
 *
 * @module
 */

export class WantedNames {
  #isWildcard = false;
  #named: ReadonlySet<string> = new Set();
  /** How many resources need each name. */
  readonly #needed = new Map<string, number>();
  /** In the order in which they were first wanted. */
  #all: Set<string> | undefined;

  get isWildcard(): boolean {
    return this.#isWildcard;
  }

  /** Wanted by name. The same set for as long as its content is the same. */
  get names(): ReadonlySet<string> {
    return this.#all ??= new Set([...this.#named, ...this.#needed.keys()]);
  }

  get isEmpty(): boolean {
    return !this.#isWildcard && this.names.size === 0;
  }

  /** Whether a resource of this name is of interest. */
  has(name: string): boolean {
    return this.#isWildcard || this.names.has(name);
  }

  /** What the client's owner wants from now on. */
  choose(isWildcard: boolean, named: Iterable<string>): void {
    this.#isWildcard = isWildcard;
    this.#named = new Set(named);
    this.#all = undefined;
  }

  need(name: string): void {
    const count = this.#needed.get(name) ?? 0;
    this.#needed.set(name, count + 1);
    if (count === 0) this.#all = undefined;
  }

  release(name: string): void {
    const count = this.#needed.get(name) ?? 0;
    if (count > 1) return void this.#needed.set(name, count - 1);
    if (this.#needed.delete(name)) this.#all = undefined;
  }
}
