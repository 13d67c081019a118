/**
 * The message of each kind of resource, and its codec.
 *
 * Layer: xDS.
 *
 * @module
 */

import type { MessageKind } from "./message_kind.ts";
import type { ResourceKind } from "./resource.ts";
import {
  Cluster,
  ClusterLoadAssignment,
  Listener,
  RouteConfiguration,
  TunnelService,
} from "./xds_messages.ts";

export interface ResourceMessages {
  readonly cluster: Cluster;
  readonly endpoints: ClusterLoadAssignment;
  readonly listener: Listener;
  readonly route: RouteConfiguration;
  readonly service: TunnelService;
}

export const RESOURCE_MESSAGES: {
  readonly [Kind in ResourceKind]: MessageKind<ResourceMessages[Kind]>;
} = {
  cluster: Cluster,
  endpoints: ClusterLoadAssignment,
  listener: Listener,
  route: RouteConfiguration,
  service: TunnelService,
};
