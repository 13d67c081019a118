/**
 * How long a round trip takes, from the PINGs that measured it: without queues
 * on the way (the minimum), and now.
 *
 * The minimum is needed to tell a queue from a long path, and a path may
 * change. So it is believed for a while, and then found anew by the code that
 * can drain the queue of its own traffic (`connection_window_size.ts`).
 *
 * @module
 */

/**
 * Below this much over the minimum it is the jitter of event loops, not a
 * queue on the path: on loopback 0.1 ms becomes 3 ms by one garbage collection.
 */
export const RTT_NOISE_MS = 10;

/** Above this multiple of the minimum, queues on the path are filling. */
const RTT_INFLATION_MAX = 1.5;

/** The minimum is doubted when no sample came near it for so long. */
export const MINIMUM_LIFE_MS = 10_000;

/** As near to the minimum as this is a path without queues. */
const NEAR_RATIO = 1.1;

/** Weight of a new sample, as in RFC 6298 §2. */
const SMOOTHING = 1 / 8;

/**
 * A queue lasts; one lost packet delays one answer. So what counts as the
 * present is the least of so many samples.
 */
const RECENT_SAMPLES = 3;

export class PathRtt {
  #smoothedMs: number | undefined;
  #minMs = Infinity;
  /** When a sample was near the minimum last. */
  #nearMs = -Infinity;
  readonly #recentMs: number[] = [];

  /** Smoothed over recent samples; `undefined` before the first. */
  get smoothedMs(): number | undefined {
    return this.#smoothedMs;
  }

  /** The newest sample; `undefined` before the first. */
  get lastMs(): number | undefined {
    return this.#recentMs.at(-1);
  }

  /** What it takes without queues, as far as known; `Infinity` before. */
  get minMs(): number {
    return this.#minMs;
  }

  /** What it takes now, queues included; 0 before the first sample. */
  get currentMs(): number {
    return this.#recentMs.length === 0 ? 0 : Math.min(...this.#recentMs);
  }

  /** Queues on the way are filling. */
  get isInflated(): boolean {
    const { currentMs } = this;
    return currentMs > this.#minMs * RTT_INFLATION_MAX &&
      currentMs > this.#minMs + RTT_NOISE_MS;
  }

  /** The minimum was not seen for long: is it still true? */
  isMinimumOld(nowMs: number): boolean {
    return nowMs > this.#nearMs + MINIMUM_LIFE_MS;
  }

  /** The next samples set the minimum. */
  forgetMinimum(): void {
    this.#minMs = Infinity;
  }

  /** Takes one measurement. */
  sample(rttMs: number, nowMs: number): void {
    if (this.#recentMs.length === RECENT_SAMPLES) this.#recentMs.shift();
    this.#recentMs.push(rttMs);
    const isNear = rttMs <= this.#minMs * NEAR_RATIO ||
      rttMs <= this.#minMs + RTT_NOISE_MS / 2;
    if (isNear) this.#nearMs = nowMs;
    this.#minMs = Math.min(this.#minMs, rttMs);
    this.#smoothedMs = this.#smoothedMs === undefined
      ? rttMs
      : this.#smoothedMs + (rttMs - this.#smoothedMs) * SMOOTHING;
  }
}
