/**
 * Measures the way to an agent and back: small messages, one at a time.
 *
 * @module
 */

import type { BenchHost } from "../../proto/link/bench_wire.ts";
import { BenchConn } from "./bench_conn.ts";
import { type BenchFigure, Samples } from "./figures.ts";
import type { BenchStage, Measurement } from "./measurement.ts";

/** Bytes of one message. */
export const MESSAGE_BYTES = 64;

export class RoundTrips implements Measurement {
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
