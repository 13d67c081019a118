/**
 * As what a simulated client subscribes: what it asks for first, what it asks
 * for then, and what it calls itself.
 *
 * @module
 */

import {
  type DecodedResource,
  needsOf,
  readResource,
} from "../read_resource.ts";
import type { Need, ResourceReader, UsableResource } from "../received.ts";
import type { RouteConfiguration } from "../../../proto/xds/xds_messages.ts";
import type { ResourceKind } from "../../../proto/xds/resource.ts";

/** All of a kind, or some by their names. */
export interface Want {
  readonly kind: ResourceKind;
  readonly isWildcard: boolean;
  readonly names: readonly string[];
}

export type SubscriberProfile =
  /** All clusters and listeners, and what they need. */
  | { readonly kind: "proxy" }
  | { readonly kind: "envoy" }
  /** Listeners by name, their routes, the clusters of those, and so on. */
  | { readonly kind: "grpc"; readonly names: readonly string[] }
  /** Just these. */
  | { readonly kind: "raw"; readonly wants: readonly Want[] };

/** What is asked for first. */
export function wantsOf(form: SubscriberProfile): readonly Want[] {
  switch (form.kind) {
    case "proxy":
    case "envoy":
      return [
        { kind: "cluster", isWildcard: true, names: [] },
        { kind: "listener", isWildcard: true, names: [] },
      ];
    case "grpc":
      return [{ kind: "listener", isWildcard: false, names: form.names }];
    case "raw":
      return form.wants;
  }
}

/** By which a server knows what kind of client it is. */
export function userAgentOf({ kind }: SubscriberProfile): string {
  switch (kind) {
    case "proxy":
      return "tunnel";
    case "grpc":
      return "gRPC tunnel adsc";
    case "envoy":
    case "raw":
      return "envoy";
  }
}

/** Takes whatever can be read. */
export function readerFor(
  form: SubscriberProfile,
): ResourceReader<DecodedResource> {
  return (kind, resource): UsableResource<DecodedResource> => {
    const content = readResource(kind, resource);
    return { content, needs: form.kind === "raw" ? [] : needed(form, content) };
  };
}

function needed(
  { kind }: SubscriberProfile,
  resource: DecodedResource,
): readonly Need[] {
  if (resource.kind !== "route" || kind !== "grpc") return needsOf(resource);
  return clustersOf(resource.message)
    .map((name) => ({ kind: "cluster", name }));
}

function clustersOf({ virtualHosts = [] }: RouteConfiguration): string[] {
  const names = virtualHosts.flatMap(({ routes = [] }) =>
    routes.flatMap(({ route }) => [
      ...route?.cluster === undefined ? [] : [route.cluster],
      ...(route?.weightedClusters?.clusters ?? [])
        .flatMap(({ name }) => name ?? []),
    ])
  );
  return [...new Set(names)];
}
