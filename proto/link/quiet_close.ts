/**
 * Ends a connection towards a Go peer as gently as its protocol allows.
 *
 * Konnectivity has no half-close: CLOSE_REQ ends both directions, and its agent
 * throws away what it has not yet written to the target (SPEC.md, "What cannot
 * be saved"). So after our `end()` the CLOSE_REQ waits until nothing has moved
 * for a while: the agent's queue drains, and an answer that is on its way still
 * arrives.
 *
 * @module
 */

import type { Timer, Timers } from "../sync/clock.ts";

/**
 * How long nothing must have moved. Longer loses less with targets that think
 * before they answer; shorter frees closed connections sooner.
 */
export const QUIET_MS = 2_000;

/** How long a Go peer may take to answer CLOSE_REQ; its own client waits 10 s. */
export const CLOSE_RSP_WAIT_MS = 10_000;

/** See the module description. */
export class QuietClose {
  readonly #timers: Timers;
  readonly #isBusy: () => boolean;
  readonly #sendClose: () => void;
  readonly #onNoAnswer: () => void;
  #timer: Timer | undefined;
  #hasMoved = false;
  #isRunning = false;

  /** @param steps What to ask and what to do. `isBusy`: data waits to be read. */
  constructor(
    timers: Timers,
    steps: {
      readonly isBusy: () => boolean;
      readonly sendClose: () => void;
      readonly onNoAnswer: () => void;
    },
  ) {
    this.#timers = timers;
    this.#isBusy = steps.isBusy;
    this.#sendClose = steps.sendClose;
    this.#onNoAnswer = steps.onNoAnswer;
  }

  /** Our direction has ended: waits for quiet from now on. */
  start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#wait();
  }

  /** Something moved. Cheap: called for every piece of data. */
  touch(): void {
    this.#hasMoved = true;
  }

  cancel(): void {
    this.#timer?.cancel();
  }

  #wait(): void {
    this.#hasMoved = false;
    this.#timer = this.#timers.after(QUIET_MS, () => {
      if (this.#hasMoved || this.#isBusy()) return this.#wait();
      this.#sendClose();
      this.#timer = this.#timers.after(CLOSE_RSP_WAIT_MS, this.#onNoAnswer);
    });
  }
}
