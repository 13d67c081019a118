/**
 * A quick look at a running tunnel: round trips, throughput both ways, new
 * connections, one after the other.
 *
 * Knows neither flags nor terminals; what it finds out is handed on as it comes.
 *
 * @module
 */

import { systemTimers } from "../../host/system_timers.ts";
import type { BenchHost } from "../../proto/link/bench_wire.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { BenchRoad } from "./bench_conn.ts";
import type {
  BenchFigure,
  BenchPlan,
  BenchProgress,
  BenchResult,
} from "./figures.ts";
import { type BenchStage, measure, type Measurement } from "./measurement.ts";
import { NewConnections } from "./new_connections.ts";
import { RoundTrips } from "./round_trips.ts";
import { Throughput } from "./throughput.ts";

/** See {@linkcode runBench}. */
export interface BenchOptions extends BenchRoad {
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
  /** Called once, when it is known who answers. */
  readonly onHost?: (host: BenchHost) => void;
}

/**
 * Measures.
 *
 * @throws {TunnelDialError | BenchError} What was found out before that was
 *   handed to `onFigure`.
 */
export async function runBench(options: BenchOptions): Promise<BenchResult> {
  const signal = options.signal ?? new AbortController().signal;
  const figures: BenchFigure[] = [];
  let host: BenchHost | undefined;
  for (const plan of options.plans) {
    if (signal.aborted) break;
    const figure = await measure({
      road: options,
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
    if (figure === undefined) continue;
    figures.push(figure);
    options.onFigure?.(figure);
  }
  return {
    ...(host === undefined ? {} : { host }),
    figures,
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
