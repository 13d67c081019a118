/**
 * What is counted about identities. Names are ours; Konnectivity has none.
 *
 * @module
 */

import type { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { SERVER_PREFIX } from "../metrics/metric_families.ts";

/** Calls of the identity service, by method and name of status. */
export function countIdentityCalls(
  registry: MetricRegistry,
): (method: string, status: string) => void {
  const calls = registry.labelled(
    "counter",
    `${SERVER_PREFIX}identity_calls_total`,
    "Calls that ask for an identity, by method and status.",
    ["method", "status"],
  );
  return (method, status) => calls.with(method, status).add();
}

/** Agents that claim what their foreign certificate does not say. */
export function countBindingMismatches(registry: MetricRegistry): () => void {
  const mismatches = registry.series(
    "counter",
    `${SERVER_PREFIX}node_binding_mismatches_total`,
    "Links whose agent claims names that its certificate does not say.",
  );
  return () => mismatches.add();
}
