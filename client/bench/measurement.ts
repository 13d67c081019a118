/**
 * What every measurement has, and the loop that gives it its time.
 *
 * @module
 */

import type { BenchHost } from "../../proto/link/bench_wire.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import type { BenchConnEvents, BenchRoad } from "./bench_conn.ts";
import type { BenchFigure, BenchPlan, BenchProgress } from "./figures.ts";

/** What a measurement works with. */
export interface BenchStage {
  readonly road: BenchRoad;
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

/** How {@linkcode measure} is told what to do. */
export interface MeasureOptions {
  readonly road: BenchRoad;
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
 * Runs one measurement.
 *
 * @returns Nothing when it was ended before the first sample.
 * @throws {TunnelDialError | BenchError}
 */
export async function measure(
  options: MeasureOptions,
  create: (stage: BenchStage) => Measurement,
): Promise<BenchFigure | undefined> {
  const { signal, timers, plan, durationMs } = options;
  const ended = new AbortController();
  const broken = Promise.withResolvers<never>();
  const onSignal = () => ended.abort();
  if (signal.aborted) return undefined;
  signal.addEventListener("abort", onSignal);
  broken.promise.catch(() => {}); // It may break when nobody waits any more.
  const measurement = create({
    ...options,
    signal: ended.signal,
    fail: broken.reject,
  });
  let timer: Timer | undefined;
  try {
    options.onOpen(await Promise.race([measurement.open(), broken.promise]));
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
    return measurement.figure();
  } catch (error) {
    // Given up before it had begun: there is nothing to say.
    if (signal.aborted) return undefined;
    throw error;
  } finally {
    timer?.cancel();
    signal.removeEventListener("abort", onSignal);
    ended.abort();
    measurement.close();
  }
}
