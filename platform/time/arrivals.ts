/**
 * A process that takes another's place waits for those that come to it one by
 * one: a server for its agents, an agent for its servers.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";

/** How long they may take to come, each after the one before. */
export const ARRIVAL_MS = 5_000;

/**
 * How long all of them may take, and the first where another process serves with
 * its own meanwhile: to take its callers without any would fail all of them.
 */
export const SERVED_MS = 30_000;

/** How often it is looked whether they have. */
const LOOK_MS = 20;

/**
 * Settles when so many are there, or those that do not come were waited for.
 *
 * @param count How many are there.
 * @param isServed Another process serves meanwhile.
 */
export async function untilArrived(
  timers: Timers,
  wanted: number,
  count: () => number,
  isServed: boolean,
): Promise<void> {
  const startMs = timers.now();
  let most = count();
  let untilMs = startMs + (isServed && most === 0 ? SERVED_MS : ARRIVAL_MS);
  while (count() < wanted && timers.now() < untilMs) {
    await new Promise<void>((resolve) => timers.after(LOOK_MS, resolve));
    if (count() <= most) continue;
    most = count();
    untilMs = Math.min(startMs + SERVED_MS, timers.now() + ARRIVAL_MS);
  }
}
