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
import { BenchConn, BenchError, type BenchRoute } from "./bench_conn.ts";
import {
  type BenchFigure,
  type BenchGap,
  type BenchPlan,
  type BenchProgress,
  type BenchResult,
  type BenchStage,
  measure,
  type Measurement,
  Samples,
} from "./measurement.ts";
import { Throughput } from "./throughput.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import { TunnelDialError } from "../dial_error.ts";

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

// Measures the way to an agent and back: small messages, one at a time.

/** Bytes of one message. */
export const MESSAGE_BYTES = 64;

class RoundTrips implements Measurement {
  readonly #message = new Uint8Array(MESSAGE_BYTES);
  readonly #samples = new Samples();
  #conn: BenchConn | undefined;
  #sentMs = 0;
  #missing = 0;

  constructor(private readonly stage: BenchStage) {}

  async open(): Promise<BenchHost> {
    const { route, signal, fail } = this.stage;
    this.#conn = await BenchConn.open(route, "echo", {
      onData: ({ length }) => this.#onEcho(length),
      onBroken: fail,
    }, { signal });
    return this.#conn.host;
  }

  begin(): void {
    this.#send();
  }

  figure(): BenchFigure | undefined {
    const spread = this.#samples.spread();
    return spread && { kind: "roundTrip", bytes: MESSAGE_BYTES, ...spread };
  }

  close(): void {
    this.#conn?.close();
  }

  #send(): void {
    this.#missing = MESSAGE_BYTES;
    this.#sentMs = this.stage.timers.now();
    // One message at a time: there is always room for it.
    this.#conn!.write(this.#message);
  }

  #onEcho(bytes: number): void {
    this.#missing -= bytes;
    if (this.#missing > 0) return;
    this.#samples.add(this.stage.timers.now() - this.#sentMs);
    this.#send();
  }
}

// Measures how many connections per second are made through an agent, each with
// one byte to the target and back.

const ONE_BYTE = new Uint8Array(1);

class NewConnections implements Measurement {
  readonly #samples = new Samples();
  #beganMs = 0;

  constructor(private readonly stage: BenchStage) {}

  /** One on trial: it shows who answers, and that anybody does. */
  open(): Promise<BenchHost> {
    return this.#once();
  }

  begin(): void {
    this.#beganMs = this.stage.timers.now();
    const { connections } = this.stage.plan;
    for (let worker = 0; worker < connections; worker++) {
      unawaited("task", this.#work());
    }
  }

  figure(): BenchFigure | undefined {
    const spread = this.#samples.spread();
    const tookMs = this.stage.timers.now() - this.#beganMs;
    return spread && {
      kind: "newConnections",
      connections: this.stage.plan.connections,
      perS: spread.count / tookMs * 1000,
      ...spread,
    };
  }

  close(): void {}

  async #work(): Promise<void> {
    const { signal, timers, fail } = this.stage;
    try {
      while (!signal.aborted) {
        const startMs = timers.now();
        await this.#once(() => this.#samples.add(timers.now() - startMs));
      }
    } catch (error) {
      // One that was under way when the time was over is not a failure.
      if (signal.aborted) return;
      if (error instanceof BenchError) return fail(error);
      if (!(error instanceof TunnelDialError)) throw error;
      fail(
        new BenchError(
          `Cannot go on after ${this.#samples.spread()?.count ?? 0} new ` +
            `connections: ${error.message}`,
          { cause: error },
        ),
      );
    }
  }

  async #once(onEcho: () => void = () => {}): Promise<BenchHost> {
    const { route, signal } = this.stage;
    const echoed = Promise.withResolvers<void>();
    const conn = await BenchConn.open(route, "echo", {
      onData: () => echoed.resolve(),
      onBroken: echoed.reject,
    }, { payload: ONE_BYTE, signal });
    const giveUp = () => {
      echoed.reject(new BenchError("the bench was given up"));
      conn.close();
    };
    signal.addEventListener("abort", giveUp);
    try {
      await echoed.promise;
      onEcho();
      await conn.end();
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
    return conn.host;
  }
}
