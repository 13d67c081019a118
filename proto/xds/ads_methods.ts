/**
 * Paths of the services that discovery is: all kinds on one stream (ADS), or one
 * kind each, and each of them as state of the world or as differences.
 *
 * The `Fetch…` methods are not served: clients that follow a catalog do not
 * poll.
 *
 * @module
 */

import type { MethodHandler } from "../grpc/call.ts";
import type { DiscoveryMode } from "./discovery.ts";
import type { ResourceKind } from "./resource.ts";

/** The kind of a method's streams. */
export interface StreamForm {
  readonly mode: DiscoveryMode;
  /** The only kind; absent: all of them. */
  readonly kind?: ResourceKind;
}

/**
 * For each kind of xDS: the package of its service, its name, and the word for
 * its resources. Our own kind comes by ADS only.
 */
const SERVICES: Readonly<
  Record<
    Exclude<ResourceKind, "service">,
    readonly [service: string, resources: string]
  >
> = {
  cluster: ["cluster.v3.ClusterDiscoveryService", "Clusters"],
  endpoints: ["endpoint.v3.EndpointDiscoveryService", "Endpoints"],
  listener: ["listener.v3.ListenerDiscoveryService", "Listeners"],
  route: ["route.v3.RouteDiscoveryService", "Routes"],
};

const AGGREGATED = "/envoy.service.discovery.v3.AggregatedDiscoveryService/";

/** All methods, each served by what `handlerOf` makes. */
export function adsMethods(
  handlerOf: (form: StreamForm) => MethodHandler,
): Readonly<Record<string, MethodHandler>> {
  const methods = new Map([
    [`${AGGREGATED}StreamAggregatedResources`, handlerOf({ mode: "sotw" })],
    [`${AGGREGATED}DeltaAggregatedResources`, handlerOf({ mode: "delta" })],
  ]);
  for (const [kind, names] of Object.entries(SERVICES)) {
    const form = { kind: kind as ResourceKind };
    const [service, resources] = names;
    const prefix = `/envoy.service.${service}/`;
    for (const mode of ["sotw", "delta"] as const) {
      const how = mode === "sotw" ? "Stream" : "Delta";
      const handler = handlerOf({ ...form, mode });
      methods.set(`${prefix}${how}${resources}`, handler);
    }
  }
  return Object.fromEntries(methods);
}
