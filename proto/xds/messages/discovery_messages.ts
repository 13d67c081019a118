/**
 * What clients and servers of xDS send each other: `envoy.service.discovery.v3`.
 *
 * Most of it is read and written by hand (see `../discovery.ts`); the codecs made
 * of this text write requests, and are what the others are compared with.
 *
 * See `google_messages.ts` about the texts.
 *
 * @module
 */

import type { ControlPlane, Node } from "./core_messages.ts";
import type { Fields } from "./fields.ts";
import type { Any, Duration, RpcStatus } from "./google_messages.ts";

export type DiscoveryRequestMessage = Fields<{
  versionInfo: string;
  node: Node;
  resourceNames: readonly string[];
  typeUrl: string;
  responseNonce: string;
  errorDetail: RpcStatus;
}>;

export type DiscoveryResponseMessage = Fields<{
  versionInfo: string;
  resources: readonly Any[];
  typeUrl: string;
  nonce: string;
  controlPlane: ControlPlane;
  /** Why resources are not in it (gRFC A88). */
  resourceErrors: readonly Fields<{
    resourceName: Fields<{ name: string }>;
    errorDetail: RpcStatus;
  }>[];
}>;

export type DeltaDiscoveryRequestMessage = Fields<{
  node: Node;
  typeUrl: string;
  resourceNamesSubscribe: readonly string[];
  resourceNamesUnsubscribe: readonly string[];
  initialResourceVersions: Readonly<Record<string, string>>;
  responseNonce: string;
  errorDetail: RpcStatus;
}>;

export type DeltaDiscoveryResponseMessage = Fields<{
  systemVersionInfo: string;
  resources: readonly ResourceMessage[];
  typeUrl: string;
  nonce: string;
  removedResources: readonly string[];
  controlPlane: ControlPlane;
}>;

/** `envoy.service.discovery.v3.Resource`. */
export type ResourceMessage = Fields<{
  version: string;
  resource: Any;
  name: string;
  aliases: readonly string[];
  ttl: Duration;
}>;

/** See `google_messages.ts`. */
export const DISCOVERY_PROTO = `
syntax = "proto3";
package envoy.service.discovery.v3;

message DiscoveryRequest {
  string version_info = 1;
  envoy.config.core.v3.Node node = 2;
  repeated string resource_names = 3;
  string type_url = 4;
  string response_nonce = 5;
  google.rpc.Status error_detail = 6;
}

message DiscoveryResponse {
  string version_info = 1;
  repeated google.protobuf.Any resources = 2;
  string type_url = 4;
  string nonce = 5;
  envoy.config.core.v3.ControlPlane control_plane = 6;
  repeated ResourceError resource_errors = 7;
}

message ResourceName { string name = 1; }

message ResourceError {
  ResourceName resource_name = 1;
  google.rpc.Status error_detail = 2;
}

message DeltaDiscoveryRequest {
  envoy.config.core.v3.Node node = 1;
  string type_url = 2;
  repeated string resource_names_subscribe = 3;
  repeated string resource_names_unsubscribe = 4;
  map<string, string> initial_resource_versions = 5;
  string response_nonce = 6;
  google.rpc.Status error_detail = 7;
}

message DeltaDiscoveryResponse {
  string system_version_info = 1;
  repeated Resource resources = 2;
  string type_url = 4;
  string nonce = 5;
  repeated string removed_resources = 6;
  envoy.config.core.v3.ControlPlane control_plane = 7;
}

message Resource {
  string version = 1;
  google.protobuf.Any resource = 2;
  string name = 3;
  repeated string aliases = 4;
  google.protobuf.Duration ttl = 6;
}
`;
