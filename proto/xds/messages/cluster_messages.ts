/**
 * How endpoints are found, chosen and talked to: `envoy.config.cluster.v3`, and
 * what stands in a cluster's `Any` fields.
 *
 * See `google_messages.ts` about the texts.
 *
 * @module
 */

import type {
  ConfigSource,
  HealthCheck,
  Http1Options,
  Http2Options,
  HttpOptions,
  Metadata,
  TransportSocket,
} from "./core_messages.ts";
import type { ClusterLoadAssignment } from "./endpoint_messages.ts";
import type { Fields } from "./fields.ts";
import type { Any, Duration, NumberValue } from "./google_messages.ts";

/** `Cluster.DiscoveryType`. */
export const DiscoveryType = {
  STATIC: 0,
  STRICT_DNS: 1,
  LOGICAL_DNS: 2,
  EDS: 3,
  ORIGINAL_DST: 4,
} as const;

/** `Cluster.LbPolicy`. */
export const LbPolicy = {
  ROUND_ROBIN: 0,
  LEAST_REQUEST: 1,
  RING_HASH: 2,
  RANDOM: 3,
  MAGLEV: 5,
  CLUSTER_PROVIDED: 6,
  LOAD_BALANCING_POLICY_CONFIG: 7,
} as const;

/** `Cluster.RingHashLbConfig.HashFunction`; gRPC knows the first one only. */
export const HashFunction = { XX_HASH: 0, MURMUR_HASH_2: 1 } as const;

/** Limits; what is missing is 1,024 in Envoy (3 for retries). */
export type Thresholds = Fields<{
  /** `RoutingPriority`: 0 or 1. */
  priority: number;
  maxConnections: NumberValue;
  maxPendingRequests: NumberValue;
  maxRequests: NumberValue;
  maxRetries: NumberValue;
}>;

/**
 * Endpoints that failed are left out for a while. What is about answers (5xx,
 * success rates) is on unless it is told not to be.
 */
export type OutlierDetection = Fields<{
  /** Between looks at who may come back; 10 s unless given. */
  interval: Duration;
  /** Of the first time; of the next ones as often as it happened. */
  baseEjectionTime: Duration;
  maxEjectionPercent: NumberValue;
  /** Chances, in percent, that what is found has consequences. */
  enforcingConsecutive_5xx: NumberValue;
  enforcingSuccessRate: NumberValue;
  /** Whether connections that fail are not counted as answers. */
  splitExternalLocalOriginErrors: boolean;
  consecutiveLocalOriginFailure: NumberValue;
  enforcingLocalOriginSuccessRate: NumberValue;
  maxEjectionTime: Duration;
}>;

export type CommonLbConfig = Fields<{
  healthyPanicThreshold: Fields<{ value: number }>;
  localityWeightedLbConfig: Readonly<Record<never, never>>;
  updateMergeWindow: Duration;
  /** Connections of all endpoints, not only of those that went. */
  closeConnectionsOnHostSetChange: boolean;
}>;

export type Cluster = Fields<{
  name: string;
  /** One of {@linkcode DiscoveryType}. */
  type: number;
  edsClusterConfig: Fields<{ edsConfig: ConfigSource; serviceName: string }>;
  /** Above 0; 5 s unless given. */
  connectTimeout: Duration;
  perConnectionBufferLimitBytes: NumberValue;
  /** One of {@linkcode LbPolicy}. */
  lbPolicy: number;
  /** For types other than EDS. */
  loadAssignment: ClusterLoadAssignment;
  healthChecks: readonly HealthCheck[];
  circuitBreakers: Fields<{ thresholds: readonly Thresholds[] }>;
  ringHashLbConfig: Fields<{
    minimumRingSize: NumberValue;
    /** One of {@linkcode HashFunction}. */
    hashFunction: number;
    maximumRingSize: NumberValue;
  }>;
  leastRequestLbConfig: Fields<{ choiceCount: NumberValue }>;
  outlierDetection: OutlierDetection;
  commonLbConfig: CommonLbConfig;
  transportSocket: TransportSocket;
  metadata: Metadata;
  closeConnectionsOnHostHealthFailure: boolean;
  ignoreHealthOnHostRemoval: boolean;
  /** By {@linkcode HTTP_OPTIONS_KEY} and the like. */
  typedExtensionProtocolOptions: Readonly<Record<string, Any>>;
}>;

/** Where a cluster has its {@linkcode HttpProtocolOptions}. */
export const HTTP_OPTIONS_KEY =
  "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/** Which HTTP Envoy speaks to a cluster; HTTP/1.1 unless told. */
export type HttpProtocolOptions = Fields<{
  commonHttpProtocolOptions: HttpOptions;
  explicitHttpConfig: HttpVersions;
  /** What its own client speaks. */
  useDownstreamProtocolConfig: HttpVersions;
}>;

export type HttpVersions = Fields<{
  httpProtocolOptions: Http1Options;
  http2ProtocolOptions: Http2Options;
}>;

/** `envoy.transport_sockets.http_11_proxy`: through an HTTP CONNECT proxy. */
export type Http11ProxyTransport = Fields<{
  /**
   * What is spoken behind the proxy; plain bytes when absent. Envoy demanded it
   * once, and gRPC takes nothing but TLS here.
   */
  transportSocket: TransportSocket;
}>;

/**
 * Where an endpoint's `typedFilterMetadata` has the address of its proxy, an
 * `Address`. Endpoints without are dialed directly.
 */
export const PROXY_ADDRESS_KEY =
  "envoy.http11_proxy_transport_socket.proxy_address";

/** See `google_messages.ts`. */
export const CLUSTER_PROTOS: readonly string[] = [
  `
syntax = "proto3";
package envoy.config.cluster.v3;

message CircuitBreakers {
  message Thresholds {
    envoy.config.core.v3.RoutingPriority priority = 1
        [(validate.rules).enum = {defined_only: true}];
    google.protobuf.UInt32Value max_connections = 2;
    google.protobuf.UInt32Value max_pending_requests = 3;
    google.protobuf.UInt32Value max_requests = 4;
    google.protobuf.UInt32Value max_retries = 5;
  }
  repeated Thresholds thresholds = 1;
}

message OutlierDetection {
  google.protobuf.Duration interval = 2 [(validate.rules).duration = {gt: {}}];
  google.protobuf.Duration base_ejection_time = 3
      [(validate.rules).duration = {gt: {}}];
  google.protobuf.UInt32Value max_ejection_percent = 4
      [(validate.rules).uint32 = {lte: 100}];
  google.protobuf.UInt32Value enforcing_consecutive_5xx = 5
      [(validate.rules).uint32 = {lte: 100}];
  google.protobuf.UInt32Value enforcing_success_rate = 6
      [(validate.rules).uint32 = {lte: 100}];
  bool split_external_local_origin_errors = 12;
  google.protobuf.UInt32Value consecutive_local_origin_failure = 13;
  google.protobuf.UInt32Value enforcing_local_origin_success_rate = 15
      [(validate.rules).uint32 = {lte: 100}];
  google.protobuf.Duration max_ejection_time = 21
      [(validate.rules).duration = {gt: {}}];
}

message Cluster {
  enum DiscoveryType {
    STATIC = 0;
    STRICT_DNS = 1;
    LOGICAL_DNS = 2;
    EDS = 3;
    ORIGINAL_DST = 4;
  }
  enum LbPolicy {
    ROUND_ROBIN = 0;
    LEAST_REQUEST = 1;
    RING_HASH = 2;
    RANDOM = 3;
    MAGLEV = 5;
    CLUSTER_PROVIDED = 6;
    LOAD_BALANCING_POLICY_CONFIG = 7;
  }
  message EdsClusterConfig {
    envoy.config.core.v3.ConfigSource eds_config = 1;
    string service_name = 2;
  }
  message LeastRequestLbConfig {
    google.protobuf.UInt32Value choice_count = 1
        [(validate.rules).uint32 = {gte: 2}];
  }
  message RingHashLbConfig {
    enum HashFunction {
      XX_HASH = 0;
      MURMUR_HASH_2 = 1;
    }
    google.protobuf.UInt64Value minimum_ring_size = 1
        [(validate.rules).uint64 = {lte: 8388608}];
    HashFunction hash_function = 3
        [(validate.rules).enum = {defined_only: true}];
    google.protobuf.UInt64Value maximum_ring_size = 4
        [(validate.rules).uint64 = {lte: 8388608}];
  }
  message CommonLbConfig {
    message LocalityWeightedLbConfig {}
    envoy.type.v3.Percent healthy_panic_threshold = 1;
    oneof locality_config_specifier {
      LocalityWeightedLbConfig locality_weighted_lb_config = 3;
    }
    google.protobuf.Duration update_merge_window = 4;
    bool close_connections_on_host_set_change = 6;
  }
  string name = 1 [(validate.rules).string = {min_len: 1}];
  oneof cluster_discovery_type {
    DiscoveryType type = 2 [(validate.rules).enum = {defined_only: true}];
  }
  EdsClusterConfig eds_cluster_config = 3;
  google.protobuf.Duration connect_timeout = 4
      [(validate.rules).duration = {gt: {}}];
  google.protobuf.UInt32Value per_connection_buffer_limit_bytes = 5;
  LbPolicy lb_policy = 6 [(validate.rules).enum = {defined_only: true}];
  repeated envoy.config.core.v3.HealthCheck health_checks = 8;
  CircuitBreakers circuit_breakers = 10;
  OutlierDetection outlier_detection = 19;
  oneof lb_config {
    RingHashLbConfig ring_hash_lb_config = 23;
    LeastRequestLbConfig least_request_lb_config = 37;
  }
  envoy.config.core.v3.TransportSocket transport_socket = 24;
  envoy.config.core.v3.Metadata metadata = 25;
  CommonLbConfig common_lb_config = 27;
  bool close_connections_on_host_health_failure = 31;
  bool ignore_health_on_host_removal = 32;
  envoy.config.endpoint.v3.ClusterLoadAssignment load_assignment = 33;
  map<string, google.protobuf.Any> typed_extension_protocol_options = 36;
}
`,
  `
syntax = "proto3";
package envoy.extensions.upstreams.http.v3;

message HttpProtocolOptions {
  message ExplicitHttpConfig {
    oneof protocol_config {
      option (validate.required) = true;
      envoy.config.core.v3.Http1ProtocolOptions http_protocol_options = 1;
      envoy.config.core.v3.Http2ProtocolOptions http2_protocol_options = 2;
    }
  }
  message UseDownstreamHttpConfig {
    envoy.config.core.v3.Http1ProtocolOptions http_protocol_options = 1;
    envoy.config.core.v3.Http2ProtocolOptions http2_protocol_options = 2;
  }
  envoy.config.core.v3.HttpProtocolOptions common_http_protocol_options = 1;
  oneof upstream_protocol_options {
    option (validate.required) = true;
    ExplicitHttpConfig explicit_http_config = 3;
    UseDownstreamHttpConfig use_downstream_protocol_config = 4;
  }
}
`,
  `
syntax = "proto3";
package envoy.extensions.transport_sockets.http_11_proxy.v3;

message Http11ProxyUpstreamTransport {
  envoy.config.core.v3.TransportSocket transport_socket = 1;
}
`,
  `
syntax = "proto3";
package envoy.extensions.transport_sockets.raw_buffer.v3;

message RawBuffer {}
`,
];
