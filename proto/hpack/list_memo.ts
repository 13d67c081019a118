/**
 * A cache of facts about header lists that come again and again.
 *
 * Calls of one kind have the same head: the decoder then hands out the same
 * list, frozen, and senders keep one. Whatever follows from a list alone need
 * not be worked out for each call.
 *
 * @module
 */

import type { HeaderField } from "./header_field.ts";

/** Lists remembered; a link has a request, an answer and trailers. */
const LISTS_MAX = 4;

/** For what is remembered of the lists of all connections. */
export const SHARED_LISTS_MAX = 16;

/** Values by list. The lists are compared as objects, not by content. */
export class ListMemo<Value> {
  readonly #lists: (readonly HeaderField[])[] = [];
  readonly #values: Value[] = [];
  #oldest = 0;

  /** @param listsMax Beyond so many lists the oldest is forgotten. */
  constructor(private readonly listsMax: number = LISTS_MAX) {}

  get(list: readonly HeaderField[]): Value | undefined {
    const lists = this.#lists;
    for (let index = 0; index < lists.length; index++) {
      if (lists[index] === list) return this.#values[index];
    }
    return undefined;
  }

  /** Remembers `value`, unless the list may still change. */
  set(list: readonly HeaderField[], value: Value): void {
    if (!Object.isFrozen(list)) return;
    this.#lists[this.#oldest] = list;
    this.#values[this.#oldest] = value;
    this.#oldest = (this.#oldest + 1) % this.listsMax;
  }

  /** Forgets everything. */
  clear(): void {
    this.#lists.length = this.#values.length = this.#oldest = 0;
  }
}
