/**
 * The metrics of a catalog (`tunnel_catalog_…`). Labels are names of sources, of
 * which there are as many as were configured.
 *
 * @module
 */

import type {
  ComputedFamily,
  MetricRegistry,
} from "../../platform/metrics/metrics.ts";
import type { Catalog } from "./catalog.ts";
import type { SourceStatus } from "./source_input.ts";

const PREFIX = "tunnel_catalog_";

/** Registers everything; values are asked for at each scrape. */
export function registerCatalogMetrics(
  registry: MetricRegistry,
  catalog: Catalog,
): void {
  registry.computed(
    "gauge",
    `${PREFIX}version`,
    "How often the catalog has changed since the start.",
    () => catalog.snapshot.version,
  );
  registry.computed(
    "gauge",
    `${PREFIX}services`,
    "Services that are known, from all sources together.",
    () => catalog.snapshot.services.size,
  );
  registry.computedFamilies(
    `${PREFIX}source_`,
    ["source"],
    SOURCE_FAMILIES,
    (value) => catalog.status.map((status) => [[status.name], value(status)]),
  );
}

const SOURCE_FAMILIES: readonly ComputedFamily<SourceStatus>[] = [
  [
    "gauge",
    "services",
    "Services that a source has.",
    (status) => status.services,
  ],
  [
    "gauge",
    "endpoints",
    "Endpoints that a source has.",
    (status) => status.endpoints,
  ],
  [
    "gauge",
    "up",
    "1 while a source is followed, 0 while it is away or unusable.",
    ({ isSynced, problem }) => isSynced && problem === undefined ? 1 : 0,
  ],
  [
    "counter",
    "changes_total",
    "Services and lists of endpoints that were new, other, or gone.",
    (status) => status.changes,
  ],
  [
    "counter",
    "refused_total",
    "Entries of a source that were not as they must be.",
    (status) => status.refused,
  ],
  [
    "counter",
    "failures_total",
    "Times that a source could not be followed.",
    (status) => status.failures,
  ],
  [
    "counter",
    "drift_repaired_total",
    "Entries whose change was missed until all was read again.",
    (status) => status.driftRepaired,
  ],
];
