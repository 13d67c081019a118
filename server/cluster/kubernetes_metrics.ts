/**
 * What a server counts about its dealings with an API server: Konnectivity's
 * families of leases, and ours of tokens.
 *
 * @module
 */

import type { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { SERVER_PREFIX, UPSTREAM_PREFIX } from "../metrics/metric_families.ts";
import type { LeaseObserver } from "../../neighbours/kubernetes/server_lease.ts";

/** Upstream's, which are its library's own, in seconds. */
const REQUEST_BOUNDS = [.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10];

/** Reviews of agents' tokens, by outcome. */
export function countReviews(
  registry: MetricRegistry,
): (outcome: string) => void {
  const reviews = registry.labelled(
    "counter",
    `${SERVER_PREFIX}token_reviews_total`,
    "Agents that showed a token, by outcome: admitted, invalid, denied or " +
      "unavailable.",
    ["outcome"],
  );
  return (outcome) => reviews.with(outcome).add();
}

/** Agents that claim what their token does not say. */
export function countTokenMismatches(registry: MetricRegistry): () => void {
  const mismatches = registry.series(
    "counter",
    `${SERVER_PREFIX}token_binding_mismatches_total`,
    "Links whose agent claims names that its token's node has not got.",
  );
  return () => mismatches.add();
}

/** What became of CertificateSigningRequests. */
export function countCsrDecisions(
  registry: MetricRegistry,
): (outcome: string) => void {
  const decisions = registry.labelled(
    "counter",
    `${SERVER_PREFIX}csr_decisions_total`,
    "CertificateSigningRequests looked at, by outcome: approved, denied, " +
      "waiting, ignored or failed.",
    ["outcome"],
  );
  return (outcome) => decisions.with(outcome).add();
}

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
  const taken = registry.series(
    "counter",
    `${SERVER_PREFIX}lease_taken_total`,
    "Renewals that found this server's lease renewed by another process with " +
      "its id.",
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
    taken: () => taken.add(),
  };
}
