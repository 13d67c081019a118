/**
 * The workers of a program of ours that was started with several.
 *
 * @module
 */

import type { Child } from "../program/child.ts";

/**
 * What a program of workers counts, by worker: `undefined` is their parent.
 *
 * @param url Its `/metrics`.
 * @param series Its name, without labels.
 */
export async function byWorker(
  url: string,
  series: string,
): Promise<ReadonlyMap<number | undefined, number>> {
  const answer = await fetch(url);
  const text = await answer.text();
  const found = text.matchAll(
    new RegExp(`^${series}(?:\\{worker="(\\d+)"\\})? (\\S+)$`, "gm"),
  );
  return new Map(
    [...found].map(([, worker, value]) => [
      worker === undefined ? undefined : Number(worker),
      Number(value),
    ]),
  );
}

/** Their processes, in the order of their numbers, once all have started. */
export async function workersOf(child: Child): Promise<readonly number[]> {
  await child.untilPrinted(/workers started/);
  const [, pids = ""] = /workers started .*processes="([\d ]+)"/.exec(
    await child.logTail(),
  ) ?? [];
  return pids.split(" ").map(Number);
}
