/**
 * What a bench finds out, as data.
 *
 * @module
 */

import type { BenchHost } from "../../proto/link/bench_wire.ts";

/** Times of many equal things, in milliseconds. */
interface Spread {
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

/** A measurement under way. */
export interface BenchProgress {
  /** What would be said if it ended now; absent before the first sample. */
  readonly figure: BenchFigure | undefined;
  readonly plan: BenchPlan;
  readonly elapsedMs: number;
  readonly durationMs: number;
}

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

/** Everything. */
export interface BenchResult {
  /** Who answered; absent when nothing did before it was interrupted. */
  readonly host?: BenchHost;
  readonly figures: readonly BenchFigure[];
  readonly gaps: readonly BenchGap[];
  readonly isInterrupted: boolean;
}

/** Samples that are kept; 60 s of the fastest round trips fit. */
const SAMPLES_MAX = 2_000_000;

/** Collects times. */
export class Samples {
  readonly #times: number[] = [];

  add(ms: number): void {
    if (this.#times.length < SAMPLES_MAX) this.#times.push(ms);
  }

  /** @returns `undefined` without samples. */
  spread(): Spread | undefined {
    if (this.#times.length === 0) return undefined;
    const sorted = Float64Array.from(this.#times).sort();
    const at = (share: number) =>
      sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
    return {
      count: sorted.length,
      minMs: sorted[0]!,
      p50Ms: at(0.5),
      p99Ms: at(0.99),
    };
  }
}
