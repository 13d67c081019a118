/**
 * Ratios out of pairs of runs. A pair ran back to back, so what slows the
 * machine slows both of it; only within a pair are numbers comparable.
 *
 * @module
 */

import type { Sample } from "./contender.ts";
import type { Figure } from "./metrics.ts";

/** One run of each side, back to back, or why there is none. */
export type Pair =
  | { readonly ours: Sample; readonly theirs: Sample }
  | { readonly spoiled: string };

export interface Comparison {
  readonly title: string;
  readonly unit: string;
  readonly ours: number;
  readonly theirs: number;
  /** Median of the ratios of the pairs. */
  readonly ratio: number;
  readonly lowest: number;
  readonly highest: number;
  /** Whether bar and limit are reached; `undefined` without either. */
  readonly isReached: boolean | undefined;
  /** Both in words. */
  readonly wanted: string;
}

/** @returns A reason in place of numbers when one pair was spoiled. */
export function compare(
  figure: Figure,
  pairs: readonly Pair[],
): Comparison | { readonly spoiled: string } {
  const ours: number[] = [];
  const theirs: number[] = [];
  const ratios: number[] = [];
  for (const pair of pairs) {
    // A ratio out of the runs that happened to go well would be a lie.
    if ("spoiled" in pair) return pair;
    const mine = pair.ours[figure.key] ?? NaN;
    const other = pair.theirs[figure.key] ?? NaN;
    ours.push(mine);
    theirs.push(other);
    ratios.push(mine / other);
  }
  const ratio = median(ratios);
  const { bar, limit, better, unit } = figure;
  const verdicts: boolean[] = [];
  const wanted: string[] = [];
  if (bar !== undefined) {
    verdicts.push(better === "more" ? ratio >= bar : ratio <= bar);
    wanted.push(`${better === "more" ? "≥" : "≤"}${bar}x`);
  }
  if (limit !== undefined) {
    verdicts.push(median(ours) <= limit);
    wanted.push(`≤${limit} ${unit}`);
  }
  return {
    title: figure.title,
    unit: figure.unit,
    ours: median(ours),
    theirs: median(theirs),
    ratio,
    lowest: Math.min(...ratios),
    highest: Math.max(...ratios),
    isReached: verdicts.length === 0 ? undefined : verdicts.every(Boolean),
    wanted: wanted.join(", "),
  };
}

/** The mean of the middle two when their number is even. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle]!;
  return (sorted[middle - 1]! + sorted[middle]!) / 2;
}
