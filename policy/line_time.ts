/**
 * The machine's time in lines about moments of a clock that is never set; many
 * lines are of the same second, whose text is made once.
 *
 * @module
 */

import type { Clock } from "../proto/sync/clock.ts";

/** The clock of the machine may be set; it is looked at again after so long. */
const CLOCK_LOOK_MS = 100;

export class LineTime {
  /** What the machine's clock is ahead of `clock`, in ms. */
  #aheadMs = 0;
  #lookedMs = -Infinity;
  #second = NaN;
  #text = "";

  /** @param write A second's text; ISO's up to behind the point unless given. */
  constructor(
    private readonly clock: Clock,
    private readonly write: (second: Date) => string = isoSecond,
  ) {}

  /**
   * Looks at a moment of `clock`.
   *
   * @returns Its milliseconds behind the full second.
   */
  look(ms: number): number {
    if (ms > this.#lookedMs + CLOCK_LOOK_MS) {
      this.#lookedMs = this.clock.now();
      this.#aheadMs = Date.now() - this.#lookedMs;
    }
    const wallMs = Math.round(ms + this.#aheadMs);
    const second = Math.floor(wallMs / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#text = this.write(new Date(second * 1000));
    }
    return (wallMs - second * 1000) | 0;
  }

  /** Of the moment that was looked at last. */
  get second(): string {
    return this.#text;
  }
}

function isoSecond(second: Date): string {
  return second.toISOString().slice(0, -4);
}
