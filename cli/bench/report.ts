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
  /** Half a sentence: what it waited for, and for how long. */
  readonly reason: string;
}

/** Receives the results of a bench. */
export type BenchWatcher = Pick<
  BenchScreen,
  "host" | "progress" | "figure" | "gap"
>;

/** The result. */
interface BenchResult {
  readonly figures: readonly BenchFigure[];
  readonly gaps: readonly BenchGap[];
}

/** Shows a bench while it runs, or as JSON when it is over. */
export class BenchScreen {
  /** Absent when nothing has answered yet. */
  #host: BenchHost | undefined;
  readonly #figures: BenchFigure[] = [];
  readonly #gaps: BenchGap[] = [];

  constructor(
    private readonly about: { readonly route: string; readonly target: string },
    private readonly how: {
      /** A line can be written over: a log is no place for that. */
      readonly isLive: boolean;
      readonly isJson: boolean;
    },
    private readonly to: {
      print(text: string): void;
      printError(text: string): void;
    },
  ) {}

  /** The connections of a measurement stand; this program answered. */
  host(host: BenchHost): void {
    const isNews = this.#host === undefined;
    this.#host = host;
    if (!isNews) return;
    const { route, target } = this.about;
    const who = host.agentId === ""
      ? `target ${target}`
      : `agent ${host.agentId}`;
    this.#say(`${who} (${host.software}), ${route}`);
  }

  /**
   * Several times a second.
   *
   * @param now The plan; the figure if it ended now; the part of its time, up
   *   to 1.
   */
  progress(...now: Parameters<typeof progressLine>): void {
    this.#clear();
    if (this.how.isLive) this.to.printError(progressLine(...now));
  }

  figure(figure: BenchFigure): void {
    this.#figures.push(figure);
    this.#say(figureRow(figure));
  }

  gap(gap: BenchGap): void {
    this.#gaps.push(gap);
    this.#say(gapRow(gap));
  }

  /** @param error Why there is no more. */
  end(interrupted: boolean, error?: string): BenchResult {
    const [host, figures, gaps] = [this.#host, this.#figures, this.#gaps];
    this.#clear();
    if (this.how.isJson) {
      const json = JSON.stringify({
        ...this.about,
        agent: host?.agentId || undefined,
        software: host?.software,
        ...{ interrupted, error },
        figures: figures.map(rounded),
        gaps,
      });
      this.to.print(`${json}\n`);
    }
    return { figures, gaps };
  }

  #say(line: string): void {
    this.#clear();
    if (!this.how.isJson) this.to.print(`${line}\n`);
  }

  #clear(): void {
    if (this.how.isLive) this.to.printError("\r\x1b[K");
  }
}

const LABEL_COLUMNS = 34;
const VALUE_COLUMNS = 14;
const BAR_COLUMNS = 20;

/** A row of the table, without its end. */
function figureRow(figure: BenchFigure): string {
  const [main, ...more] = valuesOf(figure);
  const label = labelOf(figure).padEnd(LABEL_COLUMNS);
  const row = `  ${label}${main!.padStart(VALUE_COLUMNS)}   ${
    more.join("   ")
  }`;
  return row.trimEnd();
}

/** The row of a measurement that came to nothing. */
function gapRow(gap: BenchGap): string {
  const label = labelOf(gap).padEnd(LABEL_COLUMNS);
  return `  ${label}${"–".padStart(VALUE_COLUMNS)}   ${gap.reason}`;
}

/** The running measurement, in less than 80 columns and without a line end. */
export function progressLine(
  plan: BenchPlan,
  figure: BenchFigure | undefined,
  part: number,
): string {
  const bar = progressBar(part, BAR_COLUMNS);
  const value = figure === undefined ? "…" : valuesOf(figure)[0]!;
  const label = labelOf(plan).padEnd(LABEL_COLUMNS);
  return `  ${label}${value.padStart(VALUE_COLUMNS)}   ${bar}`;
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
