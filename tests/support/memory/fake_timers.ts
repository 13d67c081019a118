/**
 * Time that moves when a test says so.
 *
 * @module
 */

import type { Timer, Timers } from "../../../proto/sync/clock.ts";
import { REST } from "./conduit_probe.ts";

interface Pending {
  readonly atMs: number;
  readonly callback: () => void;
}

/** See the module description. */
export class FakeTimers implements Timers {
  #nowMs = 1_000;
  readonly #pending = new Set<Pending>();

  /** Called with the delay of each timer, once it is set. */
  onSet: (delayMs: number) => void = () => {};

  /** Timers that are set. */
  get pendingCount(): number {
    return this.#pending.size;
  }

  /** In how many milliseconds each of them fires, in the order they were set. */
  get pendingMs(): number[] {
    return Array.from(this.#pending, ({ atMs }) => atMs - this.#nowMs);
  }

  now(): number {
    return this.#nowMs;
  }

  after(delayMs: number, callback: () => void): Timer {
    const pending = { atMs: this.#nowMs + delayMs, callback };
    this.#pending.add(pending);
    this.onSet(delayMs);
    return { cancel: () => void this.#pending.delete(pending) };
  }

  /** Moves time on, firing what is due, in order. */
  advance(durationMs: number): PromiseLike<void> {
    const untilMs = this.#nowMs + durationMs;
    while (true) {
      let next: Pending | undefined;
      for (const pending of this.#pending) {
        if (pending.atMs > untilMs) continue;
        if (next === undefined || pending.atMs < next.atMs) next = pending;
      }
      if (next === undefined) break;
      this.#pending.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.callback();
    }
    // A callback may have moved it further.
    this.#nowMs = Math.max(this.#nowMs, untilMs);
    return REST;
  }
}
