/**
 * A process that was asked to end waits a moment for one that is started beside
 * it (`kill OLD; NEW &`): were it idle and gone at once, callers would be refused
 * until the new one listens.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";

/**
 * How long at least: a start takes 0.3 to 1.2 s until it asks for the sockets, and
 * an operator who stops a service for good does not want to wait.
 */
export const SUCCESSOR_MS = 1_500;

/** And at most. */
const SUCCESSOR_MS_MAX = 10_000;

/**
 * On a slow machine, or a busy one, a start takes longer: the next one is given
 * twice what this process needed.
 *
 * @param startMs Until it asked for the sockets of the one before.
 */
export function successorWaitMs(startMs: number): number {
  return Math.min(Math.max(SUCCESSOR_MS, 2 * startMs), SUCCESSOR_MS_MAX);
}

export class SuccessorWait {
  #timer: Timer | undefined;

  /** @param over Called when the time has passed, and not by {@linkcode set}. */
  constructor(
    private readonly timers: Timers,
    private readonly over: () => void,
  ) {}

  get isOn(): boolean {
    return this.#timer !== undefined;
  }

  /** @param ms From now on, whatever was set before; 0: not any more. */
  set(ms: number): void {
    this.#timer?.cancel();
    this.#timer = ms === 0 ? undefined : this.timers.after(ms, () => {
      this.#timer = undefined;
      this.over();
    });
  }
}
