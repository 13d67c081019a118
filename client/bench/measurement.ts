/**
 * What every measurement has and finds out, as data, and the loop that gives it its
 * time.
 *
 * @module
 */

import type { BenchHost } from "../../proto/link/bench_wire.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { TUNNEL_DIAL_TIMEOUT_MS } from "../tunnel_dialer.ts";
import type { BenchConnEvents, BenchRoute } from "./bench_conn.ts";

/** What a measurement works with. */
export interface BenchStage {
  readonly route: BenchRoute;
  readonly timers: Timers;
  readonly plan: BenchPlan;
  readonly durationMs: number;
  /** Aborted when the measurement's time is over, or the user's patience. */
  readonly signal: AbortSignal;
  /** To be called with what goes wrong while it runs. */
  readonly fail: BenchConnEvents["onBroken"];
}

/** One measurement. */
export interface Measurement {
  /**
   * Makes the connections that are there before time counts.
   *
   * @returns Who answered.
   * @throws {TunnelDialError | BenchError}
   */
  open(): Promise<BenchHost>;
  /** Time counts from now. */
  begin(): void;
  /** What is known by now. */
  figure(): BenchFigure | undefined;
  /** Lets go of everything. */
  close(): void;
}

/** How often progress is reported. */
const PROGRESS_MS = 200;

/**
 * What a measurement's connections may take to stand, beyond the limit of their
 * dials: the target's answer, and in front of new connections one that is made
 * and closed (a Go agent's may take 12 s, `proto/link/quiet_close.ts`).
 */
export const STAND_MS = 15_000;

/** What a measurement came to. */
type BenchMeasured =
  | { readonly kind: "figure"; readonly figure: BenchFigure }
  | { readonly kind: "gap"; readonly gap: BenchGap }
  /** Ended before the first sample. */
  | { readonly kind: "interrupted" };

/** What {@linkcode measure} is to do. */
interface MeasureOptions {
  readonly route: BenchRoute;
  readonly timers: Timers;
  readonly plan: BenchPlan;
  readonly durationMs: number;
  /** Ends it early; what was found out by then counts. */
  readonly signal: AbortSignal;
  readonly onProgress: (progress: BenchProgress) => void;
  /** The connections stand; this is who answered. */
  readonly onOpen: (host: BenchHost) => void;
}

/**
 * Runs one measurement. Whatever becomes of its connections, it ends: some time
 * after the limit of its dials when they do not stand by then, and after its
 * duration when they do.
 *
 * @throws {TunnelDialError | BenchError}
 */
export async function measure(
  options: MeasureOptions,
  create: (stage: BenchStage) => Measurement,
): Promise<BenchMeasured> {
  const { signal, timers, plan, durationMs } = options;
  const ended = new AbortController();
  const broken = Promise.withResolvers<never>();
  const onSignal = () => ended.abort();
  if (signal.aborted) return INTERRUPTED;
  signal.addEventListener("abort", onSignal);
  broken.promise.catch(() => {}); // It may break when nobody waits any more.
  const measurement = create({
    ...options,
    signal: ended.signal,
    fail: broken.reject,
  });
  let timer: Timer | undefined;
  try {
    const standMs = (options.route.timeoutMs ?? TUNNEL_DIAL_TIMEOUT_MS) +
      STAND_MS;
    const late = new Promise<undefined>((resolve) => {
      timer = timers.after(standMs, () => resolve(undefined));
    });
    const opening = [measurement.open(), broken.promise, late];
    const host = await Promise.race(opening);
    timer?.cancel();
    if (host === undefined) {
      const reason = `its connections did not stand after ${standMs / 1000} s`;
      return { kind: "gap", gap: { ...plan, reason } };
    }
    options.onOpen(host);
    measurement.begin();
    const startMs = timers.now();
    const over = new Promise<void>((resolve) => {
      ended.signal.addEventListener("abort", () => resolve());
      if (ended.signal.aborted) resolve();
      const tick = () => {
        const elapsedMs = timers.now() - startMs;
        if (elapsedMs >= durationMs) return resolve();
        const figure = measurement.figure();
        options.onProgress({ figure, plan, elapsedMs, durationMs });
        timer = timers.after(
          Math.min(PROGRESS_MS, durationMs - elapsedMs),
          tick,
        );
      };
      tick();
    });
    await Promise.race([over, broken.promise]);
    const figure = measurement.figure();
    if (figure !== undefined) return { kind: "figure", figure };
    if (signal.aborted) return INTERRUPTED;
    const reason = `nothing came back within ${durationMs} ms: measure longer`;
    return { kind: "gap", gap: { ...plan, reason } };
  } catch (error) {
    // Given up before it had begun: there is nothing to say.
    if (signal.aborted) return INTERRUPTED;
    throw error;
  } finally {
    timer?.cancel();
    signal.removeEventListener("abort", onSignal);
    ended.abort();
    measurement.close();
  }
}

const INTERRUPTED = { kind: "interrupted" } as const;

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
