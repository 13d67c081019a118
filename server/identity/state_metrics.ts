/**
 * What is counted and noted of a state that is not on this machine: whether it
 * can be reached, and for how long not.
 *
 * @module
 */

import type { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { shownGauge } from "../metrics/metric_families.ts";
import type { Store } from "../../neighbours/store/store.ts";

/** Adds what can be seen of it. A directory has no such metrics. */
export function watchOutages(
  metrics: MetricRegistry,
  engine: Store,
  nowMs: () => number = Date.now,
): void {
  if (!engine.mayLag) return;
  shownGauge(
    metrics,
    "state_reachable",
    "Whether the state that servers have in common can be reached.",
    () => engine.outage === undefined ? 1 : 0,
  );
  shownGauge(
    metrics,
    "state_stale_seconds",
    "How long it could not be reached; 0: what is known here is current.",
    () => secondsAway(engine, nowMs()),
  );
}

/** Lines for `/readyz?verbose`: links go on, so it is no reason not to be ready. */
export function outageNotes(
  engine: Store,
  nowMs: () => number = Date.now,
): readonly string[] {
  const { outage } = engine;
  if (outage === undefined) return [];
  return [
    `${engine.noun} is away for ${secondsAway(engine, nowMs())} s: ` +
    `${outage.why}; nobody joins and nothing is changed`,
  ];
}

function secondsAway({ outage }: Store, nowMs: number): number {
  if (outage === undefined) return 0;
  // The clock may have been set back.
  return Math.max(0, Math.round((nowMs - outage.sinceMs) / 1_000));
}
