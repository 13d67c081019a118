/**
 * How long to wait before the next try.
 *
 * Each wait is drawn between half of a ceiling and the whole of it, so that a
 * thousand agents whose server restarts do not reconnect in one instant; the
 * ceiling grows by half each time.
 *
 * @module
 */

/** Ceiling of the first wait: a short break is over before users notice. */
export const FIRST_CEILING_MS = 100;
/** Growth of the ceiling from one try to the next. */
const GROWTH = 1.5;

/** Options of {@linkcode Backoff}. */
export interface BackoffOptions {
  /** No wait is longer than this. */
  readonly capMs: number;
  /** Ceiling of the first wait; {@linkcode FIRST_CEILING_MS} unless given. */
  readonly firstMs?: number | undefined;
  /** Uniform in [0, 1), such as `Math.random`. */
  readonly random: () => number;
}

export class Backoff {
  #ceilingMs: number;

  /** @throws {RangeError} If the cap is not a positive number. */
  constructor(private readonly options: BackoffOptions) {
    if (!(options.capMs > 0)) {
      throw new RangeError(`Cannot back off: the cap is ${options.capMs} ms`);
    }
    this.#ceilingMs = this.#firstMs;
  }

  get #firstMs(): number {
    const { firstMs = FIRST_CEILING_MS, capMs } = this.options;
    return Math.min(firstMs, capMs);
  }

  /**
   * The wait before the next try, in milliseconds.
   *
   * @param mostMs No longer than this, and it grows no further for now.
   */
  nextMs(mostMs = Infinity): number {
    const ceilingMs = Math.min(this.#ceilingMs, mostMs);
    this.#ceilingMs = Math.min(ceilingMs * GROWTH, this.options.capMs);
    return ceilingMs * (1 + this.options.random()) / 2;
  }

  /** A try succeeded: the next wait is short again. */
  reset(): void {
    this.#ceilingMs = this.#firstMs;
  }
}
