/**
 * What `bench` shows: rows of a table as they come, a line that lives while a
 * measurement runs, and JSON. Text only.
 *
 * @module
 */

import type { BenchHost } from "../../proto/link/bench_wire.ts";
import { progressBar } from "../program/progress.ts";

/** Times of many equal things, in milliseconds. */
export interface Spread {
  readonly count: number;
  readonly minMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** One measurement. */
export type BenchFigure =
  /** Small messages to the target and back, one at a time. */
  | { readonly kind: "roundTrip"; readonly bytes: number } & Spread
  /** Throughput from the target (`down`) or to it (`up`). */
  | {
    readonly kind: "down" | "up";
    readonly connections: number;
    readonly mbitPerS: number;
    /** All bytes, those of the start included. */
    readonly bytes: number;
  }
  /** Connections made, each with one byte there and back. */
  | {
    readonly kind: "newConnections";
    /** Made at a time. */
    readonly connections: number;
    readonly perS: number;
  } & Spread;

/** What is to be measured. */
export interface BenchPlan {
  readonly kind: BenchFigure["kind"];
  readonly connections: number;
}

/** A measurement that came to no figure. */
export interface BenchGap extends BenchPlan {
  /** Half a sentence: what was waited for, and for how long. */
  readonly reason: string;
}

/** A measurement under way. */
interface BenchProgress {
  readonly plan: BenchPlan;
  /** What would be said if it ended now; absent before the first sample. */
  readonly figure: BenchFigure | undefined;
  /** Of its time, up to 1. */
  readonly part: number;
}

/** What a bench tells. */
export type BenchEvent =
  /** The connections of a measurement stand; this is who answered. */
  | { readonly kind: "host"; readonly host: BenchHost }
  /** Several times a second. */
  | { readonly kind: "progress" } & BenchProgress
  | { readonly kind: "figure"; readonly figure: BenchFigure }
  | { readonly kind: "gap"; readonly gap: BenchGap };

/** Everything. */
export interface BenchResult {
  /** Who answered; absent when nothing did before it was interrupted. */
  host?: BenchHost;
  readonly figures: BenchFigure[];
  readonly gaps: BenchGap[];
}

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
  const { plan, figure, part } = progress;
  const bar = progressBar(part, BAR_COLUMNS);
  const value = figure === undefined ? "…" : valuesOf(figure)[0]!;
  const label = labelOf(plan).padEnd(LABEL_COLUMNS);
  return `  ${label}${value.padStart(VALUE_COLUMNS)}   ${bar}`;
}

/** One line of JSON. `error` is why there is no more. */
export function resultJson(
  { host, figures, gaps }: BenchResult,
  about: {
    readonly route: string;
    readonly target: string;
    readonly interrupted: boolean;
    readonly error?: string | undefined;
  },
): string {
  const { route, target, interrupted, error } = about;
  return JSON.stringify({
    ...{ route, target },
    agent: host?.agentId || undefined,
    software: host?.software,
    ...{ interrupted, error },
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
