/**
 * What a server counts about its dealings with an API server: Konnectivity's
 * families of leases.
 *
 * @module
 */

import type { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { counted, UPSTREAM_PREFIX } from "../metrics/metric_families.ts";
import type { LeaseObserver } from "../../neighbours/kubernetes/server_lease.ts";

/** Upstream's, which are its library's own, in seconds. */
const REQUEST_BOUNDS = [.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10];

/** Everything about leases but the log. Help texts are upstream's, letter by letter. */
export function countLeases(
  registry: MetricRegistry,
): Omit<LeaseObserver, "warn"> {
  const requests = (kind: "list" | "delete", help: string) => {
    const total = registry.labelled(
      "counter",
      `${UPSTREAM_PREFIX}lease_${kind}_total`,
      help,
      ["http_status_code", "reason"],
    );
    const what = kind === "list" ? "list" : "deletion";
    const seconds = registry.labelledHistogram(
      `${UPSTREAM_PREFIX}lease_${kind}_latency_seconds`,
      `Latency of lease ${what} calls by the garbage collection controller in seconds.`,
      "http_status_code",
      REQUEST_BOUNDS,
    );
    return (code: number, reason: string, durationMs: number) => {
      total.with(`${code}`, reason).add();
      seconds.with(`${code}`).observe(durationMs / 1000);
    };
  };
  const culled = registry.series(
    "counter",
    `${UPSTREAM_PREFIX}culled_leases_count`,
    "Count of expired leases that the lease garbage collection controller has culled.",
  );
  return {
    listed: requests(
      "list",
      "Count of lease deletion calls by the garbage collection controller. " +
        "Labeled by HTTP status code and reason.",
    ),
    deleted: requests(
      "delete",
      "Count of lease delection calls by the garbage collection controller. " +
        "Labeled by HTTP status code and reason.",
    ),
    culled: () => culled.add(),
    taken: counted(
      registry,
      "lease_taken",
      "Renewals that found this server's lease renewed by another process with " +
        "its id.",
    ),
  };
}
