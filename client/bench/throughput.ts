/**
 * Measures how many bytes per second come from an agent, or go there.
 *
 * What the route takes is not what arrives (windows and sockets hold megabytes),
 * so bytes that go up are counted where they arrive: the target reports them.
 *
 * @module
 */

import {
  type BenchHost,
  BenchLineReader,
} from "../../proto/link/bench_wire.ts";
import { BenchConn, BenchError } from "./bench_conn.ts";
import type { BenchFigure, BenchStage, Measurement } from "./measurement.ts";

/** The share of the time that belongs to slow start and growing windows. */
const WARM_UP_SHARE = 0.25;

/** What one write offers. */
const CHUNK = new Uint8Array(64 * 1024);

export class Throughput implements Measurement {
  #conns: BenchConn[] = [];
  #beganMs = Infinity;
  #bytes = 0;
  /** When the warm-up was over, and what had come by then. */
  #base: { readonly atMs: number; readonly bytes: number } | undefined;

  constructor(
    private readonly stage: BenchStage,
    private readonly kind: "down" | "up",
  ) {}

  async open(): Promise<BenchHost> {
    const { connections } = this.stage.plan;
    const opening = Array.from(
      { length: connections },
      () => this.kind === "down" ? this.#openDown() : this.#openUp(),
    );
    const all = await Promise.allSettled(opening.map(this.#keep));
    for (const one of all) {
      if (one.status === "rejected") throw one.reason;
    }
    return this.#conns[0]!.host;
  }

  begin(): void {
    this.#beganMs = this.stage.timers.now();
    if (this.kind === "up") this.#conns.forEach(offer);
  }

  figure(): BenchFigure | undefined {
    const base = this.#base ?? { atMs: this.#beganMs, bytes: 0 };
    const tookMs = this.stage.timers.now() - base.atMs;
    if (this.#bytes === 0 || !(tookMs > 0)) return undefined;
    const bits = (this.#bytes - base.bytes) * 8;
    return {
      kind: this.kind,
      connections: this.stage.plan.connections,
      mbitPerS: bits / 1000 / tookMs,
      bytes: this.#bytes,
    };
  }

  close(): void {
    for (const conn of this.#conns) conn.close();
  }

  /** So that those that stand are let go of though others never will. */
  readonly #keep = async (opening: Promise<BenchConn>): Promise<void> => {
    const conn = await opening;
    this.#conns.push(conn);
    if (this.stage.signal.aborted) conn.close();
  };

  #openDown(): Promise<BenchConn> {
    const { route, signal, fail } = this.stage;
    return BenchConn.open(route, "source", {
      onData: ({ length }) => this.#count(length),
      onBroken: fail,
    }, { signal });
  }

  async #openUp(): Promise<BenchConn> {
    const { route, signal, fail } = this.stage;
    const reports = new DiscardReports((bytes) => this.#count(bytes));
    const conn: BenchConn = await BenchConn.open(route, "discard", {
      onData: (chunk) => {
        if (!reports.read(chunk)) fail(new BenchError(ODD_REPORT));
      },
      onWritable: () => offer(conn),
      onBroken: fail,
    }, { signal });
    return conn;
  }

  #count(bytes: number): void {
    const nowMs = this.stage.timers.now();
    // What a source sends while others are still being opened does not count.
    if (nowMs < this.#beganMs) return;
    this.#bytes += bytes;
    if (this.#base !== undefined) return;
    const warmUpMs = this.stage.durationMs * WARM_UP_SHARE;
    if (nowMs - this.#beganMs < warmUpMs) return;
    this.#base = { atMs: nowMs, bytes: this.#bytes };
  }
}

/** Writes until the route is full. */
function offer(conn: BenchConn): void {
  while (conn.write(CHUNK) === CHUNK.length);
}

const ODD_REPORT = "Cannot bench: the target reports what is no number";

/** Reads the growing totals of one `discard`. */
class DiscardReports {
  readonly #line = new BenchLineReader();
  #total = 0;

  constructor(private readonly onBytes: (bytes: number) => void) {}

  /** @returns Whether it was what it should be. */
  read(chunk: Uint8Array): boolean {
    for (let rest = chunk; rest.length > 0;) {
      const line = this.#line.push(rest);
      if (line === undefined) return true;
      rest = rest.subarray(line.taken);
      if (!/^\d{1,15}$/.test(line.text ?? "")) return false;
      const total = Number(line.text);
      this.onBytes(total - this.#total);
      this.#total = total;
    }
    return true;
  }
}
