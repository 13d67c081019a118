/**
 * A process that takes another's place waits for those that come to it one by
 * one: a server for its agents, an agent for its servers.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";

/** How long they may take to come, each after the one before. */
export const READY_ARRIVAL_MS = 5_000;

/**
 * How long all of them may take, and the first where another process serves with
 * its own meanwhile: to take its callers without any would fail all of them.
 */
export const SERVED_MS = 30_000;

/** The arrivals, and the callers that wait for them. */
export class Arrivals {
  readonly #waits = new Set<() => void>();

  /** @param count How many are there now. */
  constructor(
    private readonly timers: Timers,
    private readonly count: () => number,
  ) {}

  /** Called whenever the number may have changed. */
  changed(): void {
    for (const look of this.#waits) look();
  }

  /**
   * Settles when this many are there, or the wait for the missing ones is over.
   *
   * @param isServed Another process serves meanwhile.
   */
  until(wanted: number, isServed = false): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const endMs = this.timers.now() + SERVED_MS;
    let most = this.count();
    if (most >= wanted) return Promise.resolve();
    const over = () => {
      timer.cancel();
      this.#waits.delete(look);
      resolve();
    };
    const look = () => {
      const count = this.count();
      if (count >= wanted) return over();
      if (count <= most) return;
      most = count;
      const leftMs = endMs - this.timers.now();
      timer.cancel();
      timer = this.timers.after(Math.min(leftMs, READY_ARRIVAL_MS), over);
    };
    const firstMs = isServed && most === 0 ? SERVED_MS : READY_ARRIVAL_MS;
    let timer = this.timers.after(firstMs, over);
    this.#waits.add(look);
    return promise;
  }
}
