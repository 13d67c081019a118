/**
 * What xDS calls a resource, and the kinds of it that are served here: four of
 * xDS, and `service.proto` for our own node proxies.
 *
 * Layer: xDS. A resource is opaque bytes with a name and a version; its content
 * is written where it is made, and read where it is used.
 *
 * @module
 */

/** Kinds, in the order in which changes are sent: make before break. */
export const RESOURCE_KINDS = [
  "cluster",
  "endpoints",
  "listener",
  "route",
  "service",
] as const;

export type ResourceKind = typeof RESOURCE_KINDS[number];

/** By kind, as requests and responses name them (xDS v3). */
export const TYPE_URLS: Readonly<Record<ResourceKind, string>> = {
  cluster: "type.googleapis.com/envoy.config.cluster.v3.Cluster",
  endpoints:
    "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
  listener: "type.googleapis.com/envoy.config.listener.v3.Listener",
  route: "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
  service: "type.googleapis.com/tunnel.v1.Service",
};

/** Something of each kind. */
export function byKind<T>(
  make: (kind: ResourceKind) => T,
): Record<ResourceKind, T> {
  return Object.fromEntries(
    RESOURCE_KINDS.map((kind) => [kind, make(kind)]),
  ) as Record<ResourceKind, T>;
}

const KINDS_BY_URL: ReadonlyMap<string, ResourceKind> = new Map(
  RESOURCE_KINDS.map((kind) => [TYPE_URLS[kind], kind]),
);

/** @returns `undefined` for a type that is not served. */
export function kindOfUrl(typeUrl: string): ResourceKind | undefined {
  return KINDS_BY_URL.get(typeUrl);
}

/**
 * Whether a response is the whole state of the kind: a resource that a SotW
 * response does not name is removed (listeners, clusters, services), or
 * unchanged (the other kinds). Only the former have a wildcard.
 */
export function isWholeState(kind: ResourceKind): boolean {
  return kind !== "endpoints" && kind !== "route";
}

/** One resource. Never changes; `===` means the same content. */
export interface Resource {
  readonly kind: ResourceKind;
  /** For endpoints the name that their cluster requests. */
  readonly name: string;
  /**
   * Computed from the content alone, so that it survives a restart of the
   * server: reconnecting clients send what they have.
   */
  readonly version: string;
  /** `google.protobuf.Any`, encoded. */
  readonly any: Uint8Array;
  /** For a listener or route: the clusters that it leads to. */
  readonly clusters?: readonly string[];
}
