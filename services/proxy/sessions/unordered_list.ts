/**
 * Things that come and go all the time, in no order.
 *
 * A `Set` does the same, but makes its table anew each time so many have gone,
 * and V8 has each old table refer to the next one. Once one of them is in the
 * old space, all that follow are kept with what was in them, until it is
 * looked at: of connections that last for milliseconds, every other one.
 *
 * @module
 */

/** Who can be in a list; in one at a time. */
export interface ListItem {
  /** For the list: where it has it; −1 while it is in none. */
  place: number;
}

export class UnorderedList<Item extends ListItem> {
  readonly #items: Item[] = [];

  get size(): number {
    return this.#items.length;
  }

  /** The one at hand may leave; no other one, and none may come. */
  *[Symbol.iterator](): Iterator<Item> {
    // From behind: who leaves is replaced by one that was at hand already.
    for (let place = this.#items.length - 1; place >= 0; place--) {
      yield this.#items[place]!;
    }
  }

  /** @param item In no list. */
  add(item: Item): void {
    item.place = this.#items.length;
    this.#items.push(item);
  }

  /** Harmless if it is in none. */
  delete(item: Item): void {
    const { place } = item;
    if (place < 0) return;
    item.place = -1;
    const last = this.#items.pop()!;
    if (last === item) return;
    this.#items[place] = last;
    last.place = place;
  }
}
