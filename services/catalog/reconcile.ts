/**
 * Has every source read all again from time to time.
 *
 * A change that was not reported would stay missed for as long as the process
 * lives: that is how proxies have sent clients to endpoints that were gone for
 * hours. What differs is put right and counted (`SourceStatus.driftRepaired`);
 * anything but 0 there is a defect of a watch.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import type { Source } from "./model/source.ts";

/** Each wait is drawn between the two: sources and proxies spread out. */
export const RECONCILE_MS_MIN = 600_000;
export const RECONCILE_MS_MAX = 1_800_000;

export class Reconciler {
  readonly #waiting = new Map<Source, Timer>();
  #isStopped = false;

  /** @param random Uniform in [0, 1). */
  constructor(
    private readonly sources: readonly Source[],
    private readonly timers: Timers,
    private readonly random: () => number,
  ) {}

  start(): void {
    for (const source of this.sources) this.#wait(source);
  }

  stop(): void {
    this.#isStopped = true;
    for (const timer of this.#waiting.values()) timer.cancel();
  }

  #wait(source: Source): void {
    if (this.#isStopped) return;
    const delayMs = RECONCILE_MS_MIN +
      this.random() * (RECONCILE_MS_MAX - RECONCILE_MS_MIN);
    const timer = this.timers.after(delayMs, () => {
      // One that takes long is not asked again meanwhile.
      const done = source.reconcile().finally(() => this.#wait(source));
      unawaited("catalog", done);
    });
    this.#waiting.set(source, timer);
  }
}
