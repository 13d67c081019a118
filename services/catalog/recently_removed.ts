/**
 * Endpoints that were removed from the catalog lately: clients of discovery use
 * them until they acknowledge the removal, so the server must still know them.
 * There is no timer: old entries go when one is added or looked up.
 *
 * @module
 */

import type { Clock } from "../../proto/sync/clock.ts";

/**
 * Entries are kept for this long at least, and for twice as long at most. A
 * client that reads nothing is disconnected after the same time.
 */
export const RECENTLY_REMOVED_MS = 60_000;

/** Half of the entries that are kept at most; then the older half goes. */
export const RECENTLY_REMOVED_MAX = 50_000;

export class RecentlyRemoved<Value> {
  #young = new Map<string, Value>();
  #old = new Map<string, Value>();
  #sinceMs: number;

  constructor(private readonly clock: Clock) {
    this.#sinceMs = clock.now();
  }

  /** `key` is gone from now on. */
  add(key: string, value: Value): void {
    this.#age();
    this.#young.set(key, value);
    if (this.#young.size >= RECENTLY_REMOVED_MAX) this.#turn();
  }

  get(key: string): Value | undefined {
    this.#age();
    return this.#young.get(key) ?? this.#old.get(key);
  }

  #age(): void {
    const passedMs = this.clock.now() - this.#sinceMs;
    if (passedMs < RECENTLY_REMOVED_MS) return;
    this.#turn();
    if (passedMs >= 2 * RECENTLY_REMOVED_MS) this.#old.clear();
  }

  #turn(): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#sinceMs = this.clock.now();
  }
}
