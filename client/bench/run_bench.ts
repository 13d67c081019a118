/**
 * A quick look at a running tunnel: round trips, throughput both ways, new
 * connections, one after the other.
 *
 * Knows neither flags nor terminals; what it finds out is handed on as it comes.
 *
 * @module
 */

import { systemTimers } from "../../platform/time/system_timers.ts";
import type { BenchHost } from "../../proto/link/bench_wire.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { BenchRoute } from "./bench_conn.ts";
import type {
  BenchFigure,
  BenchGap,
  BenchPlan,
  BenchProgress,
  BenchResult,
} from "./figures.ts";
import { type BenchStage, measure, type Measurement } from "./measurement.ts";
import { NewConnections } from "./new_connections.ts";
import { RoundTrips } from "./round_trips.ts";
import { Throughput } from "./throughput.ts";

/** See {@linkcode runBench}. */
interface BenchOptions extends BenchRoute {
  /** In this order. */
  readonly plans: readonly BenchPlan[];
  /** Of each measurement. */
  readonly durationMs: number;
  /** Ends it early; what was found out by then counts. */
  readonly signal?: AbortSignal;
  readonly timers?: Timers;
  /** Several times a second. */
  readonly onProgress?: (progress: BenchProgress) => void;
  /** A measurement is done. */
  readonly onFigure?: (figure: BenchFigure) => void;
  /** A measurement is over and came to none. */
  readonly onGap?: (gap: BenchGap) => void;
  /** Called once, when it is known who answers. */
  readonly onHost?: (host: BenchHost) => void;
}

/**
 * Measures.
 *
 * @returns When every measurement has come to a figure or a gap; none waits
 *   without end.
 * @throws {TunnelDialError | BenchError} What was found out before that was
 *   handed to `onFigure`.
 */
export async function runBench(options: BenchOptions): Promise<BenchResult> {
  const signal = options.signal ?? new AbortController().signal;
  const figures: BenchFigure[] = [];
  const gaps: BenchGap[] = [];
  let host: BenchHost | undefined;
  for (const plan of options.plans) {
    if (signal.aborted) break;
    const measured = await measure({
      route: options,
      timers: options.timers ?? systemTimers,
      plan,
      durationMs: options.durationMs,
      signal,
      onProgress: options.onProgress ?? (() => {}),
      onOpen: (who) => {
        if (host === undefined) options.onHost?.(who);
        host ??= who;
      },
    }, MEASUREMENTS[plan.kind]);
    switch (measured.kind) {
      case "figure":
        figures.push(measured.figure);
        options.onFigure?.(measured.figure);
        break;
      case "gap":
        gaps.push(measured.gap);
        options.onGap?.(measured.gap);
        break;
      case "interrupted":
    }
  }
  return {
    ...(host === undefined ? {} : { host }),
    figures,
    gaps,
    isInterrupted: signal.aborted,
  };
}

const MEASUREMENTS: Readonly<
  Record<BenchPlan["kind"], (stage: BenchStage) => Measurement>
> = {
  roundTrip: (stage) => new RoundTrips(stage),
  down: (stage) => new Throughput(stage, "down"),
  up: (stage) => new Throughput(stage, "up"),
  newConnections: (stage) => new NewConnections(stage),
};
