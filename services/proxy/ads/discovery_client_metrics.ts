/**
 * What is counted of a proxy's discovery (`tunnel_discovery_client_…`). Labels
 * are kinds of resources.
 *
 * @module
 */

import type { AdsKindStatus } from "../../ads/ads_kind.ts";
import type { MetricRegistry } from "../../../platform/metrics/metrics.ts";
import type { DiscoveryStatus } from "./ads_source.ts";

const PREFIX = "tunnel_discovery_client_";

/** A client that follows a discovery server. */
export interface DiscoveryFollower {
  readonly status: DiscoveryStatus;
}

/** Registers everything; values are asked for at each scrape. */
export function registerDiscoveryClientMetrics(
  registry: MetricRegistry,
  follower: DiscoveryFollower,
): void {
  const one = (
    kind: "counter" | "gauge",
    name: string,
    help: string,
    value: (status: DiscoveryStatus) => number,
  ) =>
    registry.computed(
      kind,
      `${PREFIX}${name}`,
      help,
      () => value(follower.status),
    );
  const byKind = (
    kind: "counter" | "gauge",
    name: string,
    help: string,
    value: (status: AdsKindStatus) => number,
  ) =>
    registry.computedLabelled(
      kind,
      `${PREFIX}${name}`,
      help,
      ["kind"],
      () =>
        Object.entries(follower.status.kinds)
          .map(([name, status]) => [[name], value(status)]),
    );
  one(
    "gauge",
    "connected",
    "1 while a discovery server is followed.",
    ({ state }) => state === "open" ? 1 : 0,
  );
  one(
    "counter",
    "streams_total",
    "Streams on which a discovery server has spoken.",
    ({ streams }) => streams,
  );
  byKind(
    "gauge",
    "resources",
    "Resources that are held.",
    ({ held }) => held,
  );
  byKind(
    "counter",
    "responses_total",
    "Responses that a discovery server has sent.",
    ({ responses }) => responses,
  );
  byKind(
    "counter",
    "refused_total",
    "Responses of which something could not be used.",
    ({ refused }) => refused,
  );
}
