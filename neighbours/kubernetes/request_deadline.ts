/**
 * The time that is left for a request, with all its attempts and waits, and
 * what ends it early.
 *
 * @module
 */

import { pause } from "../../platform/time/pause.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";

export class RequestDeadline implements Disposable {
  /** Ends what is under way, at the deadline or when the caller wants it. */
  readonly signal: AbortSignal;
  readonly #endMs: number;
  readonly #timer: Timer;
  #isOver = false;

  constructor(
    private readonly timers: Timers,
    readonly limitMs: number,
    signal?: AbortSignal,
  ) {
    const controller = new AbortController();
    this.#endMs = timers.now() + limitMs;
    this.#timer = timers.after(limitMs, () => {
      this.#isOver = true;
      controller.abort(new DOMException("time is over", "TimeoutError"));
    });
    this.signal = signal === undefined
      ? controller.signal
      : AbortSignal.any([controller.signal, signal]);
  }

  /** Whether time has run out. */
  get isOver(): boolean {
    return this.#isOver;
  }

  get leftMs(): number {
    return this.#endMs - this.timers.now();
  }

  /** @returns Whether there is any sense in going on. */
  async wait(durationMs: number): Promise<boolean> {
    if (durationMs > 0) await pause(this.timers, durationMs, this.signal);
    return !this.signal.aborted;
  }

  /** What goes on from here has no deadline any more. */
  [Symbol.dispose](): void {
    this.#timer.cancel();
  }
}
