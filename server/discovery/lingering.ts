/**
 * What was in the catalog a while ago: clients of discovery still go there until
 * they were told and have taken it, so the server still has to know the way.
 *
 * Nothing wakes up to forget: what is too old goes when somebody adds or asks.
 *
 * @module
 */

import type { Clock } from "../../proto/sync/clock.ts";

/**
 * What is gone is known for so long at least, and for twice as long at most. A
 * client that takes nothing is given up after the same time.
 */
export const LINGER_MS = 60_000;

/** Half of what is remembered at most; the older half goes when it is reached. */
export const LINGERING_MAX = 50_000;

/** See the module description. */
export class Lingering<Value> {
  readonly #clock: Clock;
  #young = new Map<string, Value>();
  #old = new Map<string, Value>();
  #sinceMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.now();
  }

  /** It is gone from now on. */
  add(key: string, value: Value): void {
    this.#age();
    this.#young.set(key, value);
    if (this.#young.size >= LINGERING_MAX) this.#turn();
  }

  get(key: string): Value | undefined {
    this.#age();
    return this.#young.get(key) ?? this.#old.get(key);
  }

  #age(): void {
    const passedMs = this.#clock.now() - this.#sinceMs;
    if (passedMs < LINGER_MS) return;
    this.#turn();
    if (passedMs >= 2 * LINGER_MS) this.#old.clear();
  }

  #turn(): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#sinceMs = this.#clock.now();
  }
}
