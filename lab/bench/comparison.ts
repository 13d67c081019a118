/**
 * Ratios out of pairs of runs, and what they are worth. A pair ran back to
 * back, so what slows the machine slows both of it; only within a pair are
 * numbers comparable.
 *
 * @module
 */

import type { Sample } from "./generator.ts";
import {
  type ContenderName,
  type Figure,
  type Letter,
  LETTERS,
  type Ratios,
} from "./metric.ts";

/** What one run gave, or why it gave nothing. */
export type Outcome = Sample | { readonly spoiled: string };

/** A run of each side, back to back. */
export interface Pair {
  readonly ours: Outcome;
  readonly theirs: Outcome;
}

/** What is wanted of a number, and what came of it. */
export interface Assessment {
  /** `≥1.8x`, `≤16 KB each`; empty when nothing is. */
  readonly bar: string;
  readonly isReached: boolean | undefined;
}

/** Numbers of both sides and their ratio. */
export interface Comparison extends Assessment {
  readonly ours: number;
  readonly theirs: number;
  /** Median of the ratios of the pairs. */
  readonly ratio: number;
  readonly lowest: number;
  readonly highest: number;
}

/** Numbers of one side alone. */
export interface Standing extends Assessment {
  readonly ours: number;
  readonly lowest: number;
  readonly highest: number;
}

interface Spoiled {
  readonly spoiled: string;
}

/**
 * The ratio of a figure to a peer's.
 *
 * @param a Whose bars count; see {@linkcode barsOf}.
 * @returns A reason in place of numbers when one run was spoiled.
 */
export function compare(
  figure: Figure,
  pairs: readonly Pair[],
  a: ContenderName,
  peer: ContenderName,
): Comparison | Spoiled {
  const ours: number[] = [];
  const theirs: number[] = [];
  const ratios: number[] = [];
  for (const pair of pairs) {
    // A ratio out of the runs that happened to go well would be a lie.
    if (isSpoiled(pair.ours)) return pair.ours;
    if (isSpoiled(pair.theirs)) return pair.theirs;
    const mine = pair.ours[figure.key] ?? NaN;
    const other = pair.theirs[figure.key] ?? NaN;
    ours.push(mine);
    theirs.push(other);
    ratios.push(mine / other);
  }
  const ratio = median(ratios);
  const bar = barOf(barsOf(figure, a), peer);
  return {
    ours: median(ours),
    theirs: median(theirs),
    ratio,
    lowest: Math.min(...ratios),
    highest: Math.max(...ratios),
    ...assess(figure, ratio, bar, "x"),
  };
}

/** A figure of A's against its limit, which binds ours alone. */
export function stand(
  figure: Figure,
  outcomes: readonly Outcome[],
  a: ContenderName,
): Standing | Spoiled {
  const values: number[] = [];
  for (const outcome of outcomes) {
    if (isSpoiled(outcome)) return outcome;
    values.push(outcome[figure.key] ?? NaN);
  }
  const ours = median(values);
  return {
    ours,
    lowest: Math.min(...values),
    highest: Math.max(...values),
    ...assess(
      figure,
      ours,
      a === "ours" ? figure.limit : undefined,
      figure.unit === "" || figure.unit === "x"
        ? figure.unit
        : ` ${figure.unit}`,
    ),
  };
}

/**
 * What counts for `a`: the bars as they are for ours, "no worse than
 * Konnectivity" wherever it has a bar when one end is ours, nothing for others.
 */
export function barsOf(figure: Figure, a: ContenderName): Ratios {
  if (a === "ours") return figure.bars ?? {};
  const isMixed = a === "ours-server" || a === "ours-agent";
  return isMixed && figure.bars?.K !== undefined ? { K: 1 } : {};
}

function assess(
  { better }: Figure,
  value: number,
  bar: number | undefined,
  unit: string,
): Assessment {
  if (bar === undefined) return { bar: "", isReached: undefined };
  return better === "more"
    ? { bar: `≥${bar}${unit}`, isReached: value >= bar }
    : { bar: `≤${bar}${unit}`, isReached: value <= bar };
}

function barOf(ratios: Ratios, peer: ContenderName): number | undefined {
  const letter = (Object.keys(LETTERS) as Letter[])
    .find((each) => LETTERS[each] === peer);
  return letter === undefined ? undefined : ratios[letter];
}

export function isSpoiled(outcome: Outcome): outcome is Spoiled {
  return typeof outcome["spoiled"] === "string";
}

/** The mean of the middle two when their number is even; NaN of nothing. */
export function median(values: readonly number[]): number {
  if (values.length === 0) return NaN;
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle]!;
  return (sorted[middle - 1]! + sorted[middle]!) / 2;
}
