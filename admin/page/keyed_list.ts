/**
 * A list that a server tells changes of: items by key, and a number that says
 * that something is different.
 *
 * @module
 */

import { type Signal, signal } from "@preact/signals";
import type { ListChange } from "../../proto/admin/list_answers.ts";

export class KeyedList<T> {
  readonly items: Map<string, T> = new Map<string, T>();
  /** Another one after each change. */
  readonly version: Signal<number> = signal(0);
  /** Everything has been told at least once. */
  readonly isKnown: Signal<boolean> = signal(false);
  readonly #keyOf: (item: T) => string;

  constructor(keyOf: (item: T) => string) {
    this.#keyOf = keyOf;
  }

  /** What a server tells. */
  apply(change: ListChange<T>): void {
    if (change.isWhole) this.items.clear();
    for (const item of change.changed) this.items.set(this.#keyOf(item), item);
    for (const key of change.gone) this.items.delete(key);
    this.#changed();
  }

  /** Newer items of those that are there, and others beside them. */
  merge(items: readonly T[]): void {
    for (const item of items) this.items.set(this.#keyOf(item), item);
    this.#changed();
  }

  remove(key: string): void {
    if (this.items.delete(key)) this.#changed();
  }

  #changed(): void {
    this.isKnown.value = true;
    this.version.value++;
  }
}
