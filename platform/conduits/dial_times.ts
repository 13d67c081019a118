/**
 * How long the dials of the last minutes took: a ring, written once a dial, and
 * sorted when somebody asks.
 *
 * @module
 */

/** Enough for a 99th percentile; a busy server's are of its last seconds. */
export const DIAL_TIMES_MAX = 2_048;

/** Older ones say nothing of now. */
export const DIAL_TIMES_AGE_MS = 300_000;

/** See the module description. */
export class DialTimes {
  readonly #tookMs = new Float32Array(DIAL_TIMES_MAX);
  readonly #atMs = new Float64Array(DIAL_TIMES_MAX).fill(-Infinity);
  #next = 0;

  add(nowMs: number, tookMs: number): void {
    this.#tookMs[this.#next] = tookMs;
    this.#atMs[this.#next] = nowMs;
    this.#next = (this.#next + 1) % DIAL_TIMES_MAX;
  }

  /**
   * @param shares Such as 0.5 for the median.
   * @param ageMs Older ones do not count.
   * @returns In milliseconds, in the order of `shares`; none without dials.
   */
  percentiles(
    nowMs: number,
    shares: readonly number[],
    ageMs: number = DIAL_TIMES_AGE_MS,
  ): readonly number[] {
    const since = nowMs - ageMs;
    const lately = this.#tookMs.filter((_, at) => this.#atMs[at]! >= since)
      .sort();
    if (lately.length === 0) return [];
    return shares.map((share) =>
      lately[Math.min(lately.length - 1, Math.floor(share * lately.length))]!
    );
  }
}
