/**
 * A quick look at a running tunnel: round trips, throughput both ways, new
 * connections, one after another. Results are reported as they come.
 *
 * @module
 */

import { TunnelDialError } from "../../client/dial_error.ts";
import { TUNNEL_DIAL_TIMEOUT_MS } from "../../client/tunnel_dialer.ts";
import { withDeadline } from "../../platform/time/deadline.ts";
import { pause } from "../../platform/time/pause.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import {
  type BenchHost,
  BenchLineReader,
} from "../../proto/link/bench_wire.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import { BenchConn, BenchError, type BenchRoute } from "./bench_conn.ts";
import type { BenchFigure, BenchPlan, BenchWatcher, Spread } from "./report.ts";

/** See {@linkcode runBench}. */
interface BenchOptions extends BenchRoute {
  /** In this order. */
  readonly plans: readonly BenchPlan[];
  /** Of each measurement. */
  readonly durationMs: number;
  /** Ends it early; results until then count. */
  readonly signal: AbortSignal;
  readonly told: BenchWatcher;
  readonly timers?: Timers;
}

/** Interval of progress reports. */
const PROGRESS_MS = 200;

/**
 * What a measurement's connections may take to stand, beyond the limit of their
 * dials: the target's answer, and in front of new connections one that is made
 * and closed (a Go agent's may take 12 s, `proto/link/quiet_close.ts`).
 */
export const STAND_MS = 15_000;

/** Bytes of one message of a round trip. */
const MESSAGE_BYTES = 64;

/** The share of the time that belongs to slow start and growing windows. */
const WARM_UP_SHARE = 0.25;

/** The most that one read or write moves. */
const CHUNK_BYTES = 64 * 1024;

/**
 * Measures. It ends when every measurement has a figure or a gap; each has a
 * time limit.
 *
 * @throws {TunnelDialError | BenchError} After the results until then.
 */
export async function runBench(options: BenchOptions): Promise<void> {
  for (const plan of options.plans) {
    if (options.signal.aborted) return;
    await measure(plan, options);
  }
}

/** Ends when its time is over, or its user's patience. */
async function measure(plan: BenchPlan, options: BenchOptions): Promise<void> {
  const { durationMs, signal, told, timers = systemTimers } = options;
  const ended = new AbortController();
  const over = AbortSignal.any([signal, ended.signal]);
  const stage: Stage = { plan, route: options, durationMs, timers, over };
  const gap = (reason: string) => told.gap({ ...plan, reason });
  const standMs = (options.timeoutMs ?? TUNNEL_DIAL_TIMEOUT_MS) + STAND_MS;
  try {
    const measurement = MEASUREMENTS[plan.kind](stage);
    let isLate = false;
    const host = await withDeadline({
      timers,
      timeoutMs: standMs,
      late: () => isLate = true,
      controller: ended,
    }, () => measurement.open()).catch((error) => {
      if (!isLate) throw error;
    });
    if (host === undefined) {
      return gap(`its connections did not stand after ${standMs / 1000} s`);
    }
    told.host(host);
    const startMs = timers.now();
    const running = measurement.run().catch((error) => {
      if (!over.aborted) throw error;
    });
    running.catch(() => {}); // It may fail while nothing waits for it.
    for (;;) {
      const elapsedMs = timers.now() - startMs;
      const figure = measurement.figure();
      if (over.aborted || elapsedMs >= durationMs) {
        if (figure !== undefined) return told.figure(figure);
        if (signal.aborted) return;
        return gap(
          `nothing came back within ${durationMs} ms: measure longer`,
        );
      }
      told.progress(plan, figure, elapsedMs / durationMs);
      const waitMs = Math.min(PROGRESS_MS, durationMs - elapsedMs);
      await Promise.race([running, pause(timers, waitMs, over)]);
    }
  } catch (error) {
    // It was given up before it began: there is no result.
    if (!signal.aborted) throw error;
  } finally {
    ended.abort();
  }
}

/** The tools of a measurement. */
interface Stage {
  readonly plan: BenchPlan;
  readonly route: BenchRoute;
  readonly durationMs: number;
  readonly timers: Timers;
  /** Aborted when the measurement is over: its connections end by it. */
  readonly over: AbortSignal;
}

/** One measurement. */
interface Measurement {
  /**
   * Makes the connections that are there before time counts.
   *
   * @returns Who answered.
   * @throws {TunnelDialError | BenchError}
   */
  open(): Promise<BenchHost>;
  /** Time counts from now; until the stage is over, or it cannot go on. */
  run(): Promise<void>;
  /** The results until now. */
  figure(): BenchFigure | undefined;
}

const MEASUREMENTS: Readonly<
  Record<BenchPlan["kind"], (stage: Stage) => Measurement>
> = {
  roundTrip: roundTrips,
  down: (stage) => throughput(stage, "down"),
  up: (stage) => throughput(stage, "up"),
  newConnections,
};

/** The way to an agent and back: small messages, one at a time. */
function roundTrips({ route, timers, over }: Stage): Measurement {
  const samples = new Samples();
  let conn: BenchConn;
  return {
    async open() {
      conn = await BenchConn.open(route, "echo", over);
      return conn.host;
    },
    async run() {
      const message = new Uint8Array(MESSAGE_BYTES);
      const echo = new Uint8Array(MESSAGE_BYTES);
      while (!over.aborted) {
        const sentMs = timers.now();
        await conn.write(message);
        for (let left = MESSAGE_BYTES; left > 0;) {
          left -= await conn.read(echo.subarray(0, left));
        }
        samples.add(timers.now() - sentMs);
      }
    },
    figure() {
      const spread = samples.spread();
      return spread && { kind: "roundTrip", bytes: MESSAGE_BYTES, ...spread };
    },
  };
}

/**
 * How many bytes per second come from an agent, or go there. What the route
 * takes is not what arrives (windows and sockets hold megabytes), so bytes that
 * go up are counted where they arrive: the target reports them.
 */
function throughput(stage: Stage, kind: "down" | "up"): Measurement {
  const { plan: { connections }, route, timers, over } = stage;
  const service = kind === "down" ? "source" : "discard";
  let conns: readonly BenchConn[] = [];
  let beganMs = NaN;
  let bytes = 0;
  /** When the warm-up was over, and what had come by then. */
  let base: { readonly atMs: number; readonly bytes: number } | undefined;
  const count = (more: number) => {
    bytes += more;
    const atMs = timers.now();
    const isWarm = atMs - beganMs >= stage.durationMs * WARM_UP_SHARE;
    if (isWarm) base ??= { atMs, bytes };
  };
  return {
    async open() {
      const opening = Array.from(
        { length: connections },
        () => BenchConn.open(route, service, over),
      );
      // A failure ends the others: none is waited for.
      conns = await Promise.all(opening);
      return conns[0]!.host;
    },
    async run() {
      beganMs = timers.now();
      await Promise.all(
        conns.flatMap((conn) =>
          kind === "down"
            ? [received(conn, over, count)]
            : [offered(conn, over), reported(conn, over, count)]
        ),
      );
    },
    figure() {
      const from = base ?? { atMs: beganMs, bytes: 0 };
      const tookMs = timers.now() - from.atMs;
      if (bytes === 0 || !(tookMs > 0)) return undefined;
      const mbitPerS = (bytes - from.bytes) * 8 / 1000 / tookMs;
      return { kind, connections, mbitPerS, bytes };
    },
  };
}

async function received(
  conn: BenchConn,
  over: AbortSignal,
  count: (bytes: number) => void,
): Promise<void> {
  const chunk = new Uint8Array(CHUNK_BYTES);
  while (!over.aborted) count(await conn.read(chunk));
}

async function offered(conn: BenchConn, over: AbortSignal): Promise<void> {
  const chunk = new Uint8Array(CHUNK_BYTES);
  while (!over.aborted) await conn.write(chunk);
}

/** Reads the growing totals of one `discard`. */
async function reported(
  conn: BenchConn,
  over: AbortSignal,
  count: (bytes: number) => void,
): Promise<void> {
  const lines = new BenchLineReader();
  const chunk = new Uint8Array(CHUNK_BYTES);
  let total = 0;
  while (!over.aborted) {
    let rest = chunk.subarray(0, await conn.read(chunk));
    while (rest.length > 0) {
      const line = lines.push(rest);
      if (line === undefined) break;
      rest = rest.subarray(line.taken);
      if (!/^\d{1,15}$/.test(line.text ?? "")) {
        throw new BenchError(
          "Cannot bench: the target's report is no number",
        );
      }
      count(Number(line.text) - total);
      total = Number(line.text);
    }
  }
}

/** How many connections per second are made, each with one byte and its echo. */
function newConnections(
  { plan: { connections }, route, timers, over }: Stage,
): Measurement {
  const samples = new Samples();
  let beganMs = 0;
  const once = async (onEcho: () => void = () => {}): Promise<BenchHost> => {
    const byte = new Uint8Array(1);
    const conn = await BenchConn.open(route, "echo", over, byte);
    await conn.read(byte);
    onEcho();
    await conn.end();
    return conn.host;
  };
  const work = async () => {
    try {
      while (!over.aborted) {
        const startMs = timers.now();
        await once(() => samples.add(timers.now() - startMs));
      }
    } catch (error) {
      if (!(error instanceof TunnelDialError)) throw error;
      throw new BenchError(
        `Cannot go on after ${samples.spread()?.count ?? 0} new ` +
          `connections: ${error.message}`,
        { cause: error },
      );
    }
  };
  return {
    // A connection on trial: it shows which program answers, and that it works.
    open: () => once(),
    async run() {
      beganMs = timers.now();
      await Promise.all(Array.from({ length: connections }, work));
    },
    figure() {
      const spread = samples.spread();
      if (spread === undefined) return undefined;
      const perS = spread.count / (timers.now() - beganMs) * 1000;
      return { kind: "newConnections", connections, perS, ...spread };
    },
  };
}

/** Samples that are kept; 60 s of the fastest round trips fit. */
const SAMPLES_MAX = 2_000_000;

/** Collects times. */
class Samples {
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
