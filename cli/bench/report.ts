/**
 * What `bench` shows: rows of a table as they come, a line that lives while a
 * measurement runs, and JSON. Text only.
 *
 * @module
 */

import { progressBar } from "../program/progress.ts";
import type {
  BenchFigure,
  BenchGap,
  BenchPlan,
  BenchProgress,
  BenchResult,
} from "../../client/bench/measurement.ts";

const LABEL_COLUMNS = 34;
const VALUE_COLUMNS = 14;
const BAR_COLUMNS = 20;

/** A row of the table, without its end. */
export function figureRow(figure: BenchFigure): string {
  const [main, ...more] = valuesOf(figure);
  const label = labelOf(figure).padEnd(LABEL_COLUMNS);
  const row = `  ${label}${main!.padStart(VALUE_COLUMNS)}   ${
    more.join("   ")
  }`;
  return row.trimEnd();
}

/** The row of a measurement that came to nothing. */
export function gapRow(gap: BenchGap): string {
  const label = labelOf(gap).padEnd(LABEL_COLUMNS);
  return `  ${label}${"–".padStart(VALUE_COLUMNS)}   ${gap.reason}`;
}

/** What runs now, in less than 80 columns and without an end. */
export function progressLine(progress: BenchProgress): string {
  const { plan, figure, elapsedMs, durationMs } = progress;
  const bar = progressBar(elapsedMs / durationMs, BAR_COLUMNS);
  const value = figure === undefined ? "…" : valuesOf(figure)[0]!;
  const label = labelOf(plan).padEnd(LABEL_COLUMNS);
  return `  ${label}${value.padStart(VALUE_COLUMNS)}   ${bar}`;
}

/** One line of JSON. `error` is why there is no more. */
export function resultJson(
  { host, figures, gaps, isInterrupted }: BenchResult,
  about: { readonly route: string; readonly target: string },
  error?: string,
): string {
  return JSON.stringify({
    ...about,
    agent: host?.agentId || undefined,
    software: host?.software,
    interrupted: isInterrupted,
    error,
    figures: figures.map(rounded),
    gaps,
  });
}

function labelOf(plan: Pick<BenchPlan, "kind"> & Partial<BenchPlan>): string {
  const { kind, connections = 1 } = plan;
  const s = connections === 1 ? "" : "s";
  switch (kind) {
    case "roundTrip":
      return "round trip";
    case "down":
    case "up":
      return `${kind}, ${connections} connection${s}`;
    case "newConnections":
      return `new connections, ${connections} at a time`;
  }
}

/** The most telling one first. */
function valuesOf(figure: BenchFigure): readonly string[] {
  switch (figure.kind) {
    case "roundTrip":
    case "newConnections": {
      const { minMs, p50Ms, p99Ms, count } = figure;
      const rest = [`min ${millis(minMs)}`, `p99 ${millis(p99Ms)}`];
      const median = `p50 ${millis(p50Ms)}`;
      return figure.kind === "roundTrip"
        ? [median, ...rest, `${thousands(count)} trips`]
        : [`${thousands(figure.perS)} /s`, median, ...rest];
    }
    case "down":
    case "up":
      return [
        `${thousands(figure.mbitPerS)} Mbit/s`,
        `${thousands(figure.bytes / 2 ** 20)} MiB`,
      ];
  }
}

/** Three digits that mean something. */
function millis(ms: number): string {
  const digits = ms >= 100 ? 0 : ms >= 10 ? 1 : ms >= 1 ? 2 : 3;
  return `${ms.toFixed(digits)} ms`;
}

function thousands(value: number): string {
  const digits = value < 10 ? 2 : value < 100 ? 1 : 0;
  return value.toFixed(digits).replace(/\B(?=(?:\d{3})+(?!\d|\.\d))/g, ",");
}

/** The clock has microseconds. */
function rounded(figure: BenchFigure): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(figure).map(([name, value]) => [
      name,
      typeof value === "number" ? Number(value.toFixed(3)) : value,
    ]),
  );
}
