/**
 * How often an API server is asked: a bucket of requests that fills steadily.
 *
 * An agent storm must not become a storm on the API server, which the whole
 * cluster shares.
 *
 * @module
 */

import type { Clock } from "../../proto/sync/clock.ts";

export interface RequestRateOptions {
  readonly clock: Clock;
  readonly perSecond: number;
  /** Requests that may leave at once after a time of quiet. */
  readonly burst: number;
}

export class RequestRate {
  readonly #clock: Clock;
  readonly #intervalMs: number;
  readonly #burstMs: number;
  /** When the request that comes next would be on time. */
  #dueMs = -Infinity;

  constructor({ clock, perSecond, burst }: RequestRateOptions) {
    if (!(perSecond > 0 && burst >= 1)) {
      throw new RangeError(
        `Cannot limit requests to ${perSecond} a second and ${burst} at once`,
      );
    }
    this.#clock = clock;
    this.#intervalMs = 1000 / perSecond;
    this.#burstMs = this.#intervalMs * (burst - 1);
  }

  /**
   * Reserves a place for one request.
   *
   * @param patienceMs Who would have to wait longer gets no place.
   * @returns How long to wait until it may leave; `undefined`: no place.
   */
  reserve(patienceMs: number): number | undefined {
    const now = this.#clock.now();
    const dueMs = Math.max(this.#dueMs, now);
    const waitMs = Math.max(0, dueMs - this.#burstMs - now);
    if (waitMs > patienceMs) return undefined;
    this.#dueMs = dueMs + this.#intervalMs;
    return waitMs;
  }
}
