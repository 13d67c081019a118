/**
 * Measures how many connections per second are made through an agent, each with
 * one byte to the target and back.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import type { BenchHost } from "../../proto/link/bench_wire.ts";
import { BenchConn } from "./bench_conn.ts";
import { BenchError } from "./bench_error.ts";
import { TunnelDialError } from "../dial_error.ts";
import { type BenchFigure, Samples } from "./figures.ts";
import type { BenchStage, Measurement } from "./measurement.ts";

const ONE_BYTE = new Uint8Array(1);

export class NewConnections implements Measurement {
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
