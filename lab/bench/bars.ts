/**
 * Bars, each with what was seen: a line for each, and whether it was reached.
 *
 * @module
 */

import type { Tally } from "../../tests/support/watch/tally.ts";

/** How a figure is written. */
export type Unit = "ms" | "µs" | "KiB" | "%" | "s" | "";

/** What was measured, and what is wanted. */
export interface Bar {
  readonly name: string;
  readonly seen: number;
  readonly unit: Unit;
  /** The most that is good. */
  readonly most: number;
}

/** Writes one line and counts it. */
export function grade(tally: Tally, { name, seen, unit, most }: Bar): void {
  const line = `${name}: ${withUnit(seen, unit)} (bar ${withUnit(most, unit)})`;
  if (seen <= most) tally.pass(line);
  else tally.fail(name, `${withUnit(seen, unit)}, and ${most} is the bar`);
}

function withUnit(value: number, unit: Unit): string {
  const digits = value >= 100 || Number.isInteger(value) ? 0 : 1;
  return `${value.toFixed(digits)}${unit === "" ? "" : ` ${unit}`}`;
}

/** The value below which `share` of them are. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const at = Math.min(sorted.length - 1, Math.floor(share * sorted.length));
  return sorted[at] ?? NaN;
}
