/**
 * What passed in the last hour: a few numbers every ten seconds, in one array
 * that never grows. It answers "was it slow an hour ago?" without a Prometheus.
 *
 * @module
 */

import { trafficOf } from "../../net/admin/own_facts.ts";
import type {
  HistoryAnswer,
  HistorySample,
} from "../../proto/admin/list_answers.ts";
import type { Timer } from "../../proto/sync/clock.ts";
import type { ServerParts } from "../../server/assembly/server_admin_port.ts";

/** Time between two samples. */
export const HISTORY_STEP_MS = 10_000;

/** An hour of them. */
export const HISTORY_SAMPLES_MAX = 360;

/** The values of one sample, in the order of the array. */
const FIELDS = [
  "conduits",
  "toTargetRate",
  "fromTargetRate",
  "dialRate",
  "failedDials",
  "dialP50Ms",
  "dialP99Ms",
] as const satisfies readonly (keyof HistorySample)[];

type Facts = Pick<ServerParts, "timers" | "conduits" | "pendingDials">;

/** See the module description. */
export class TrafficHistory {
  readonly #numbers = new Float32Array(HISTORY_SAMPLES_MAX * FIELDS.length);
  readonly #atMs = new Float64Array(HISTORY_SAMPLES_MAX);
  #count = 0;
  #failed = 0;
  #timer: Timer | undefined;

  constructor(
    private readonly facts: Facts,
    private readonly wallMs: () => number = Date.now,
  ) {
    this.#arm();
  }

  /** @param sinceMs Of the wall clock; samples of then and later. */
  answer(sinceMs = 0): HistoryAnswer {
    const samples: HistorySample[] = [];
    const first = Math.max(0, this.#count - HISTORY_SAMPLES_MAX);
    for (let number = first; number < this.#count; number++) {
      const place = number % HISTORY_SAMPLES_MAX;
      const atMs = this.#atMs[place]!;
      if (atMs >= sinceMs) samples.push(this.#sampleAt(place, atMs));
    }
    return { stepMs: HISTORY_STEP_MS, samples };
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #sampleAt(place: number, atMs: number): HistorySample {
    const known = FIELDS.flatMap((name, at) => {
      const value = this.#numbers[place * FIELDS.length + at]!;
      return Number.isNaN(value) ? [] : [[name, value] as const];
    });
    return {
      at: new Date(atMs).toISOString(),
      ...Object.fromEntries(known),
    } as HistorySample;
  }

  #arm(): void {
    this.#timer = this.facts.timers.after(HISTORY_STEP_MS, () => {
      this.#take();
      this.#arm();
    });
  }

  #take(): void {
    const { conduits, pendingDials } = this.facts;
    const traffic = trafficOf(conduits, pendingDials(), HISTORY_STEP_MS);
    const place = this.#count++ % HISTORY_SAMPLES_MAX;
    // Several workers tell of one moment then.
    this.#atMs[place] = Math.floor(this.wallMs() / HISTORY_STEP_MS) *
      HISTORY_STEP_MS;
    const failedDials = traffic.failedDials - this.#failed;
    this.#failed = traffic.failedDials;
    const sample = { ...traffic, failedDials };
    for (const [at, name] of FIELDS.entries()) {
      this.#numbers[place * FIELDS.length + at] = sample[name] ?? NaN;
    }
  }
}
