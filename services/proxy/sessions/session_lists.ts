/**
 * Lists of sessions and of connections, in which an item knows its neighbours: to
 * leave costs the same however many there are.
 *
 * @module
 */

/** What can be in a list; in one at a time. */
export class IdleLink {
  /** When it was last active. */
  lastHeardMs = 0;
  /** For the list: its neighbours. */
  older: IdleLink | undefined;
  newer: IdleLink | undefined;
}

/**
 * Things in the order in which they were last active, so that the oldest is
 * found at once, however many there are: a search would help a sender that
 * invents sessions.
 *
 * A `Set` would do for things that come and go in no order, but it makes a new
 * table after many removals, and V8 lets each old table refer to the next. Once
 * one table is in the old space, all later tables are kept with their content
 * until a full collection: of connections that last for milliseconds, that kept
 * every other one.
 */
export class IdleList<Item extends IdleLink> {
  #oldest: Item | undefined;
  #newest: Item | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get oldest(): Item | undefined {
    return this.#oldest;
  }

  /** From the oldest on; the item of this step may leave the list. */
  *[Symbol.iterator](): Iterator<Item> {
    for (let item = this.#oldest; item !== undefined;) {
      const next = item.newer as Item | undefined;
      yield item;
      item = next;
    }
  }

  /** It is new, and active now. */
  add(item: Item, nowMs: number): void {
    item.lastHeardMs = nowMs;
    this.#append(item);
    this.#size++;
  }

  /** It is active now. */
  touch(item: Item, nowMs: number): void {
    item.lastHeardMs = nowMs;
    if (this.#newest === item) return;
    this.#unlink(item);
    this.#append(item);
  }

  delete(item: Item): void {
    this.#unlink(item);
    this.#size--;
  }

  #append(item: Item): void {
    item.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = item;
    else this.#newest.newer = item;
    this.#newest = item;
  }

  #unlink(item: Item): void {
    const { older, newer } = item;
    if (older === undefined) this.#oldest = newer as Item | undefined;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older as Item | undefined;
    else newer.older = older;
    item.older = item.newer = undefined;
  }
}
