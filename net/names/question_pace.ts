/**
 * Keeps questions to name servers from coming all at once: a kernel holds some
 * 250 small datagrams for a program that is slow to read them, and drops the
 * rest, of any sender.
 *
 * @module
 */

import { guarded } from "../../platform/errors/internal_errors.ts";
import type { Timers } from "../../proto/sync/clock.ts";

/** So many are sent at once, two questions each. */
export const BURST = 16;

/** How long until there may be as many again: 16,000 questions a second. */
export const PAUSE_MS = 2;

export class QuestionPace {
  readonly #waiting: (() => void)[] = [];
  #left = BURST;
  #isPausing = false;

  constructor(private readonly timers: Timers) {}

  /** Runs `send` now, or in its turn. */
  run(send: () => void): void {
    if (this.#left === 0) return void this.#waiting.push(send);
    this.#left--;
    this.#pause();
    send();
  }

  #pause(): void {
    if (this.#isPausing) return;
    this.#isPausing = true;
    this.timers.after(PAUSE_MS, () => {
      this.#isPausing = false;
      this.#left = BURST;
      for (const send of this.#waiting.splice(0, BURST)) {
        guarded("dial", () => this.run(send));
      }
    });
  }
}
