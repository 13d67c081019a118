/**
 * What passed in the last hour: a few numbers every ten seconds. It answers "was
 * it slow an hour ago?" without a Prometheus.
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

type Facts = Pick<ServerParts, "timers" | "conduits" | "pendingDials">;

/** See the module description. */
export class TrafficHistory {
  readonly #samples: HistorySample[] = [];
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
    const samples = this.#samples.filter(({ at }) => Date.parse(at) >= sinceMs);
    return { stepMs: HISTORY_STEP_MS, samples };
  }

  stop(): void {
    this.#timer?.cancel();
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
    // Several workers tell of one moment then.
    const atMs = Math.floor(this.wallMs() / HISTORY_STEP_MS) * HISTORY_STEP_MS;
    this.#samples.push({
      at: new Date(atMs).toISOString(),
      conduits: traffic.conduits,
      toTargetRate: traffic.toTargetRate,
      fromTargetRate: traffic.fromTargetRate,
      dialRate: traffic.dialRate,
      failedDials: traffic.failedDials - this.#failed,
      dialP50Ms: traffic.dialP50Ms,
      dialP99Ms: traffic.dialP99Ms,
    });
    this.#failed = traffic.failedDials;
    if (this.#samples.length > HISTORY_SAMPLES_MAX) this.#samples.shift();
  }
}
