/**
 * The byte counts of conduits at the last two ticks of one clock, from which
 * rates are computed on request, so that the hot path does no work for them.
 *
 * The numbers are in one array, by place: a tick walks through ten thousand in
 * a millisecond, and they cost 40 bytes each.
 *
 * @module
 */

/** Between two ticks: a rate covers the last one or two of them. */
export const RATE_TICK_MS = 5_000;

/** For one conduit. */
const NUMBERS = 5;

/** The bytes that one conduit has moved, and its rate. */
export interface Flow {
  readonly toTargetRate: number;
  readonly fromTargetRate: number;
  /** When it was last seen to move, by the clock, to a tick. */
  readonly movedMs: number;
}

/** See the module description. */
export class RateSamples {
  #numbers = new Float64Array(64 * NUMBERS);
  /** When the last two ticks were. */
  #lastMs: number;
  #beforeMs: number;

  constructor(nowMs: number) {
    this.#lastMs = nowMs;
    this.#beforeMs = nowMs;
  }

  /** From now on `place` belongs to another conduit. */
  begin(place: number, nowMs: number): void {
    const at = place * NUMBERS;
    if (at + NUMBERS > this.#numbers.length) {
      const grown = new Float64Array(this.#numbers.length * 2);
      grown.set(this.#numbers);
      this.#numbers = grown;
    }
    const numbers = this.#numbers;
    numbers[at] =
      numbers[at + 1] =
      numbers[at + 2] =
      numbers[at + 3] =
        0;
    numbers[at + 4] = nowMs;
  }

  /** The next `take`s are of this tick. */
  tick(nowMs: number): void {
    this.#beforeMs = this.#lastMs;
    this.#lastMs = nowMs;
  }

  /** How far the conduit at `place` is at this tick. */
  take(place: number, toTarget: number, fromTarget: number): void {
    const at = place * NUMBERS;
    const numbers = this.#numbers;
    const hasMoved = numbers[at + 1] !== toTarget ||
      numbers[at + 3] !== fromTarget;
    numbers[at] = numbers[at + 1]!;
    numbers[at + 1] = toTarget;
    numbers[at + 2] = numbers[at + 3]!;
    numbers[at + 3] = fromTarget;
    if (hasMoved) numbers[at + 4] = this.#lastMs;
  }

  /** @param startedMs When it began: earlier time is not part of a rate. */
  flow(
    place: number,
    nowMs: number,
    startedMs: number,
    toTarget: number,
    fromTarget: number,
  ): Flow {
    const at = place * NUMBERS;
    const numbers = this.#numbers;
    const sinceMs = Math.max(startedMs, this.#beforeMs);
    // A rate of a conduit that is milliseconds old means nothing.
    const seconds = Math.max(1_000, nowMs - sinceMs) / 1_000;
    const moves = numbers[at + 1] !== toTarget ||
      numbers[at + 3] !== fromTarget;
    return {
      toTargetRate: Math.round((toTarget - numbers[at]!) / seconds),
      fromTargetRate: Math.round((fromTarget - numbers[at + 2]!) / seconds),
      movedMs: moves ? nowMs : numbers[at + 4]!,
    };
  }
}
