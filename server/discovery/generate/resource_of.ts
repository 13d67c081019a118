/**
 * Messages as resources: validated, encoded, and with a version that says what
 * is in them and nothing else.
 *
 * @module
 */

import { createHash } from "node:crypto";
import type { Cluster } from "../../../proto/xds/messages/cluster_messages.ts";
import type { ConfigSource } from "../../../proto/xds/messages/core_messages.ts";
import { ApiVersion } from "../../../proto/xds/messages/core_messages.ts";
import type { ClusterLoadAssignment } from "../../../proto/xds/messages/endpoint_messages.ts";
import type { Listener } from "../../../proto/xds/messages/listener_messages.ts";
import type { RouteConfiguration } from "../../../proto/xds/messages/route_messages.ts";
import type { Resource, ResourceKind } from "../../../proto/xds/resource.ts";
import {
  cluster,
  clusterLoadAssignment,
  encodeAny,
  listener,
  type MessageKind,
  routeConfiguration,
} from "../../../proto/xds/xds_messages.ts";

/** The message of each kind. */
interface Messages {
  readonly cluster: Cluster;
  readonly endpoints: ClusterLoadAssignment;
  readonly listener: Listener;
  readonly route: RouteConfiguration;
}

const CODECS: { readonly [Kind in ResourceKind]: MessageKind<Messages[Kind]> } =
  {
    cluster,
    endpoints: clusterLoadAssignment,
    listener,
    route: routeConfiguration,
  };

/** From the stream that the resource came by. gRPC refuses other sources. */
export const ADS: ConfigSource = {
  ads: {},
  resourceApiVersion: ApiVersion.V3,
};

/** 128 bits, as hexadecimal digits. */
const VERSION_LENGTH = 32;

/**
 * Makes a resource.
 *
 * @throws {TypeError} When its clients would refuse it: a defect of whoever made
 *   the message.
 */
export function resourceOf<Kind extends ResourceKind>(
  kind: Kind,
  message: Messages[Kind],
): Resource {
  const any = encodeAny<Messages[Kind]>(CODECS[kind], message);
  const version = createHash("sha256").update(any).digest("hex")
    .slice(0, VERSION_LENGTH);
  return Object.freeze({ kind, name: nameOf(message), version, any });
}

function nameOf(message: Messages[ResourceKind]): string {
  const { name, clusterName } = message as Cluster & ClusterLoadAssignment;
  return name ?? clusterName ?? "";
}
