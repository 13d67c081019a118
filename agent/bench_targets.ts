/**
 * The bench target inside an agent: what `tunnel bench` measures against, so
 * that a running tunnel is all it needs.
 *
 * Whoever may dial may already move as many octets to any target that the agent
 * reaches; this adds no right, only a target. It is bounded all the same.
 *
 * @module
 */

import { BENCH_ADDRESS, type BenchHost } from "../proto/link/bench_wire.ts";
import { DialError, type DialTarget } from "../proto/link/link.ts";
import type { Timers } from "../proto/sync/clock.ts";
import type { Conduit } from "../proto/transfer/conduit.ts";
import { BenchConduit } from "./bench_conduit.ts";

/**
 * Bench connections at a time: `tunnel bench` opens 64 at most. With a window
 * of 256 KiB each they hold 32 MiB at most.
 */
export const BENCH_CONDUITS_MAX = 128;

/** See the module description. */
export class BenchTargets {
  readonly #host: BenchHost;
  readonly #timers: Timers;
  readonly #connectionsMax: number;
  #open = 0;

  /** @param options.connectionsMax 0: this agent is not to be measured. */
  constructor(
    host: BenchHost,
    timers: Timers,
    options: { readonly connectionsMax?: number } = {},
  ) {
    this.#host = host;
    this.#timers = timers;
    this.#connectionsMax = options.connectionsMax ?? BENCH_CONDUITS_MAX;
  }

  /**
   * A new connection to the target.
   *
   * @throws {DialError} When there are as many as may be.
   */
  dial(): Promise<Conduit> {
    if (this.#open >= this.#connectionsMax) {
      return Promise.reject(new DialError("endpoint", this.#refusal));
    }
    this.#open++;
    return Promise.resolve(
      new BenchConduit(this.#host, this.#timers, () => {
        this.#open--;
      }),
    );
  }

  get #refusal(): string {
    return this.#connectionsMax === 0
      ? "Cannot bench: this agent runs with --bench-target=false"
      : `Cannot bench: ${this.#connectionsMax} bench connections are open at ` +
        "this agent; wait until another bench is over";
  }
}

/** Whether a dial is for a bench target. */
export function isBenchDial({ protocol, address }: DialTarget): boolean {
  return address === BENCH_ADDRESS && protocol === "tcp";
}
