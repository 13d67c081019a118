/**
 * Resources out of their bytes, and what each is of no use without: a cluster
 * its load assignment, a listener the routes of the requests that it takes.
 *
 * @module
 */

import { GrpcError } from "../../proto/grpc/status.ts";
import type { ReceivedResource } from "../../proto/xds/discovery.ts";
import { unpack } from "../../proto/xds/any.ts";
import {
  type Any,
  type Cluster,
  Cluster_DiscoveryType,
  HttpConnectionManager,
  type Listener,
} from "../../proto/xds/xds_messages.ts";
import type { ResourceKind } from "../../proto/xds/resource.ts";
import {
  RESOURCE_MESSAGES,
  type ResourceMessages,
} from "../../proto/xds/resource_messages.ts";
import { type Need, RefusedResource } from "./held_resources.ts";

/** A resource, as what it is. */
export type DecodedResource = {
  readonly [Kind in ResourceKind]: {
    readonly kind: Kind;
    readonly message: ResourceMessages[Kind];
  };
}[ResourceKind];

/** @throws {RefusedResource} When its bytes are no such message. */
export function readResource(
  kind: ResourceKind,
  { value }: Pick<ReceivedResource, "value">,
): DecodedResource {
  try {
    return {
      kind,
      message: RESOURCE_MESSAGES[kind].decode(value),
    } as DecodedResource;
  } catch (error) {
    if (!(error instanceof GrpcError)) throw error;
    throw new RefusedResource(error.message);
  }
}

/**
 * The further resources that a resource needs.
 *
 * @throws {RefusedResource} When a part of it is broken.
 */
export function needsOf(resource: DecodedResource): readonly Need[] {
  switch (resource.kind) {
    case "cluster": {
      const name = assignmentNameOf(resource.message);
      return name === undefined ? [] : [{ kind: "endpoints", name }];
    }
    case "listener":
      return routesOf(resource.message)
        .map((name) => ({ kind: "route", name }));
    case "endpoints":
    case "route":
    case "service":
      return [];
  }
}

/** The name under which a cluster's load assignment is requested. */
export function assignmentNameOf(
  { name, type, edsClusterConfig }: Cluster,
): string | undefined {
  if (type !== Cluster_DiscoveryType.EDS) return undefined;
  return edsClusterConfig?.serviceName || name;
}

function routesOf({ apiListener, filterChains = [] }: Listener): string[] {
  const configs: readonly (Any | undefined)[] = [
    apiListener?.apiListener,
    ...filterChains.flatMap(({ filters = [] }) =>
      filters.map(({ typedConfig }) => typedConfig)
    ),
  ];
  const names = configs.flatMap((any) => {
    try {
      return unpack(HttpConnectionManager, any)?.rds?.routeConfigName ?? [];
    } catch (error) {
      if (!(error instanceof GrpcError)) throw error;
      throw new RefusedResource(error.message);
    }
  });
  return [...new Set(names)];
}
