/**
 * Whether something grows, told from samples that jump up and down.
 *
 * @module
 */

import type { Tally } from "../../tests/support/watch/tally.ts";

/** One sample. */
export interface Sample {
  readonly atMinutes: number;
  readonly value: number;
}

/**
 * The least of each `count` samples in a row: memory saws up to the next
 * collection of garbage, and only what is left behind one tells of a leak.
 */
export function lowest(samples: readonly Sample[], count: number): Sample[] {
  const least: Sample[] = [];
  for (let at = 0; at + count <= samples.length; at += count) {
    const some = samples.slice(at, at + count);
    least.push(some.reduce((a, b) => b.value < a.value ? b : a));
  }
  return least;
}

/**
 * Growth per minute: the median of the slopes between all pairs (Theil and
 * Sen), which some samples far off do not move.
 *
 * @returns 0 with fewer than two samples.
 */
export function slopePerMinute(samples: readonly Sample[]): number {
  const slopes: number[] = [];
  for (const [at, one] of samples.entries()) {
    for (const other of samples.slice(at + 1)) {
      const minutes = other.atMinutes - one.atMinutes;
      if (minutes > 0) slopes.push((other.value - one.value) / minutes);
    }
  }
  slopes.sort((a, b) => a - b);
  const middle = slopes.length >> 1;
  if (slopes.length === 0) return 0;
  return slopes.length % 2 === 1
    ? slopes[middle]!
    : (slopes[middle - 1]! + slopes[middle]!) / 2;
}

/** Part of the time in which caches fill and code is compiled. */
export const WARM_UP_SHARE = 0.25;

/** Samples of which the lowest counts: half a minute of one every two seconds. */
const SAMPLES_PER_POINT = 15;

/** What may be more at the end than behind the warm-up, and is no growth. */
const MEMORY_SLACK_KIB = 4 * 1024;
const MEMORY_SLACK_SHARE = 0.01;

/** Memory of a process, which saws up to each collection of garbage. */
export function gradeMemory(
  whose: string,
  samples: readonly Sample[],
  minutes: number,
  tally: Tally,
): void {
  const memory = lowest(samples, SAMPLES_PER_POINT);
  const held = memory[0]?.value ?? 0;
  const slackKib = MEMORY_SLACK_KIB + MEMORY_SLACK_SHARE * held;
  grade(`memory of ${whose} (KiB)`, memory, slackKib / minutes, tally);
  const points = memory.map(({ value }) => value);
  tally.note(`     lowest of each half minute: ${points.join(" ")}`);
}

/** Passes when it grows by no more than `barPerMinute`. */
export function grade(
  what: string,
  samples: readonly Sample[],
  barPerMinute: number,
  tally: Tally,
): void {
  const slope = slopePerMinute(samples);
  const name = `${what}: ${samples[0]?.value} to ${samples.at(-1)?.value}, ` +
    `slope ${slope.toFixed(1)} per minute, bar ${barPerMinute.toFixed(1)}`;
  if (samples.length < 2) tally.fail(name, "too few samples: run for longer");
  else if (slope <= barPerMinute) tally.pass(name);
  else tally.fail(name, "it grows");
}
