/**
 * How long a round trip takes, from the PINGs that measured it.
 *
 * @module
 */

/**
 * Below this much over the minimum it is the jitter of event loops, not a
 * queue on the path: on loopback 0.1 ms becomes 3 ms by one garbage collection.
 */
export const RTT_NOISE_MS = 10;

/** Above this multiple of the minimum, queues on the path are filling. */
export const RTT_INFLATION_MAX = 1.5;

/** After this long the minimum is measured anew: routes change. */
const MINIMUM_LIFE_MS = 300_000;

/** Weight of a new sample, as in RFC 6298 §2. */
const SMOOTHING = 1 / 8;

/** See the module description. */
export class PathRtt {
  #smoothedMs: number | undefined;
  #minMs = Infinity;
  #minAtMs = 0;
  #lastMs = 0;

  /** Smoothed over recent samples; `undefined` before the first. */
  get smoothedMs(): number | undefined {
    return this.#smoothedMs;
  }

  /** The newest sample; `undefined` before the first. */
  get lastMs(): number | undefined {
    return this.#smoothedMs === undefined ? undefined : this.#lastMs;
  }

  /** The newest sample says that what we ask for queues up on the way. */
  get isInflated(): boolean {
    return this.#lastMs > this.#minMs * RTT_INFLATION_MAX &&
      this.#lastMs - this.#minMs > RTT_NOISE_MS;
  }

  /** Takes one measurement. */
  sample(rttMs: number, nowMs: number): void {
    this.#lastMs = rttMs;
    if (rttMs <= this.#minMs || nowMs - this.#minAtMs > MINIMUM_LIFE_MS) {
      this.#minMs = rttMs;
      this.#minAtMs = nowMs;
    }
    this.#smoothedMs = this.#smoothedMs === undefined
      ? rttMs
      : this.#smoothedMs + (rttMs - this.#smoothedMs) * SMOOTHING;
  }
}
