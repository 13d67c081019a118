/**
 * How long the target's first bytes are held after the answer that opens a
 * connection.
 *
 * Some callers lose bytes that come with the answer: kube-apiserver rejects a
 * connection whose first bytes it reads together with the 200 to its CONNECT,
 * Go's gRPC clients drop what comes right behind DIAL_RSP, and a Konnectivity
 * server may write bytes to a CONNECT client ahead of its own 200. So a
 * target's first bytes wait until the caller has sent something, which shows
 * that it has read the answer, or until the answer left {@linkcode
 * FIRST_HOLD_MS} ago.
 *
 * @module
 */

import type { Timer, Timers } from "../sync/clock.ts";

/**
 * Measured with 200 dials, 20 at once, on two processors with work for nine: 5
 * ms lost up to half of the dials at a Go client, and up to a tenth behind a Go
 * server, whose queues close part of the gap; 15 ms lost none.
 */
export const FIRST_HOLD_MS = 20;

/** Whose bytes wait. */
export interface HoldOwner {
  /** What had to wait, if anything had, may go. Forget the hold. */
  onHoldOver(): void;
}

/** Its timer runs only while something waits. */
export class FirstHold {
  #untilMs: number;
  #timer: Timer | undefined;

  /** The answer leaves now, or with `restart`. */
  constructor(
    private readonly timers: Timers,
    private readonly owner: HoldOwner,
  ) {
    this.#untilMs = timers.now() + FIRST_HOLD_MS;
  }

  /** The answer leaves now. Only while nothing waits. */
  restart(): void {
    this.#untilMs = this.timers.now() + FIRST_HOLD_MS;
  }

  /**
   * Whether the target's bytes must wait; the owner is notified when they may
   * go.
   */
  mustWait(): boolean {
    if (this.#timer !== undefined) return true;
    const leftMs = this.#untilMs - this.timers.now();
    if (leftMs <= 0) return false;
    this.#timer = this.timers.after(leftMs, () => this.owner.onHoldOver());
    return true;
  }

  /** The caller has sent something: notifies the owner. Spent. */
  release(): void {
    this.#timer?.cancel();
    this.owner.onHoldOver();
  }

  /** There is no reason left to wait. It is used up. */
  cancel(): void {
    this.#timer?.cancel();
  }
}
