/**
 * Where a cluster's endpoints are: `envoy.config.endpoint.v3`.
 *
 * See `google_messages.ts` about the texts.
 *
 * @module
 */

import type { Address, Locality, Metadata } from "./core_messages.ts";
import type { Fields } from "./fields.ts";
import type { NumberValue } from "./google_messages.ts";

export type LbEndpoint = Fields<{
  endpoint: Fields<{ address: Address; hostname: string }>;
  /** One of `HealthStatus`; UNKNOWN counts as healthy. */
  healthStatus: number;
  metadata: Metadata;
  /** 1 or more. */
  loadBalancingWeight: NumberValue;
}>;

export type LocalityLbEndpoints = Fields<{
  /** gRPC refuses the assignment without one, were it empty. */
  locality: Locality;
  lbEndpoints: readonly LbEndpoint[];
  /** gRPC leaves a locality without one out. */
  loadBalancingWeight: NumberValue;
  /** 0 to 128, without gaps: the next one is used when this one fails. */
  priority: number;
  metadata: Metadata;
}>;

export type ClusterLoadAssignment = Fields<{
  clusterName: string;
  endpoints: readonly LocalityLbEndpoints[];
  policy: Fields<{ overprovisioningFactor: NumberValue }>;
}>;

/** See `google_messages.ts`. */
export const ENDPOINT_PROTO = `
syntax = "proto3";
package envoy.config.endpoint.v3;

message Endpoint {
  envoy.config.core.v3.Address address = 1;
  string hostname = 3;
}

message LbEndpoint {
  oneof host_identifier { Endpoint endpoint = 1; }
  envoy.config.core.v3.HealthStatus health_status = 2;
  envoy.config.core.v3.Metadata metadata = 3;
  google.protobuf.UInt32Value load_balancing_weight = 4
      [(validate.rules).uint32 = {gte: 1}];
}

message LocalityLbEndpoints {
  envoy.config.core.v3.Locality locality = 1;
  repeated LbEndpoint lb_endpoints = 2;
  google.protobuf.UInt32Value load_balancing_weight = 3
      [(validate.rules).uint32 = {gte: 1}];
  uint32 priority = 5 [(validate.rules).uint32 = {lte: 128}];
  envoy.config.core.v3.Metadata metadata = 9;
}

message ClusterLoadAssignment {
  message Policy {
    google.protobuf.UInt32Value overprovisioning_factor = 3
        [(validate.rules).uint32 = {gt: 0}];
  }
  string cluster_name = 1 [(validate.rules).string = {min_len: 1}];
  repeated LocalityLbEndpoints endpoints = 2;
  Policy policy = 4;
}
`;
