/**
 * Work on ten thousand agents in small pieces, so that what else is to be done
 * waits no longer than for one of them.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";

/** How long a turn may take. A piece of work is shorter. */
export const WORK_TURN_MS = 5;

export class WorkTurns {
  readonly #jobs: Iterator<unknown>[] = [];
  #timer: Timer | undefined;
  #isWorking = false;

  constructor(private readonly timers: Timers) {}

  /** Does it piece by piece, behind what is to be done already; begins at once. */
  run(job: Iterator<unknown>): void {
    this.#jobs.push(job);
    if (this.#timer === undefined && !this.#isWorking) this.#work();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#jobs.length = 0;
  }

  #work(): void {
    const beginMs = this.timers.now();
    this.#timer = undefined;
    this.#isWorking = true;
    try {
      while (this.#jobs.length > 0) {
        if (this.#jobs[0]!.next().done === true) this.#jobs.shift();
        if (this.timers.now() - beginMs >= WORK_TURN_MS) break;
      }
    } catch (error) {
      // A slip: that job is over, the others are not.
      this.#jobs.shift();
      throw error;
    } finally {
      this.#isWorking = false;
      if (this.#jobs.length > 0) {
        this.#timer = this.timers.after(0, () => this.#work());
      }
    }
  }
}
