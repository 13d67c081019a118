/**
 * The workers of a program of ours that was started with several.
 *
 * @module
 */

import type { Child } from "../program/child.ts";

/** Their processes, in the order of their numbers, once all have started. */
export async function workersOf(child: Child): Promise<readonly number[]> {
  await child.untilPrinted(/workers started/);
  const [, pids = ""] = /workers started .*processes="([\d ]+)"/.exec(
    await child.logTail(),
  ) ?? [];
  return pids.split(" ").map(Number);
}
