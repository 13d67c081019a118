/**
 * What all kinds of resources have in common: nodes, addresses, sources of
 * configuration, matchers (`envoy.config.core.v3`, `envoy.type`, `xds`).
 *
 * See `google_messages.ts` about the texts.
 *
 * @module
 */

import type { Fields } from "./fields.ts";
import type {
  Any,
  BoolValue,
  Duration,
  NumberValue,
  Struct,
} from "./google_messages.ts";

export type Locality = Fields<{
  region: string;
  zone: string;
  subZone: string;
}>;

export type Node = Fields<{
  id: string;
  cluster: string;
  metadata: Struct;
  locality: Locality;
  userAgentName: string;
  /** What gRPC sends … */
  userAgentVersion: string;
  /** … and what Envoy does. */
  userAgentBuildVersion: Fields<{
    version: Fields<
      { majorNumber: number; minorNumber: number; patch: number }
    >;
  }>;
  clientFeatures: readonly string[];
}>;

export type ControlPlane = Fields<{ identifier: string }>;

export type Metadata = Fields<{
  filterMetadata: Readonly<Record<string, Struct>>;
  typedFilterMetadata: Readonly<Record<string, Any>>;
}>;

/** `SocketAddress.Protocol`. */
export const SocketProtocol = { TCP: 0, UDP: 1 } as const;

export type SocketAddress = Fields<{
  /** One of {@linkcode SocketProtocol}. */
  protocol: number;
  address: string;
  portValue: number;
}>;

export type Address = Fields<{ socketAddress: SocketAddress }>;

export type UdpSocketConfig = Fields<{
  /** Bytes; 1,500 unless given, longer datagrams are lost. At most 65,535. */
  maxRxDatagramSize: NumberValue;
  preferGro: BoolValue;
}>;

export const ApiVersion = { AUTO: 0, V2: 1, V3: 2 } as const;

export type ConfigSource = Fields<{
  /** Where this resource came from, whatever that was. */
  ads: Readonly<Record<never, never>>;
  self: Readonly<Record<never, never>>;
  /** How long to wait for a first answer; 15 s unless given, 0 for ever. */
  initialFetchTimeout: Duration;
  /** One of {@linkcode ApiVersion}. */
  resourceApiVersion: number;
}>;

/** A named piece of configuration whose type its `Any` says. */
export type TypedConfig = Fields<{ name: string; typedConfig: Any }>;

export type TransportSocket = TypedConfig;

/** Jittered, and twice as long each time. */
export type BackoffStrategy = Fields<{
  /** At least a millisecond. */
  baseInterval: Duration;
  /** Ten times as long unless given. */
  maxInterval: Duration;
}>;

export const HealthStatus = {
  UNKNOWN: 0,
  HEALTHY: 1,
  UNHEALTHY: 2,
  DRAINING: 3,
  TIMEOUT: 4,
  DEGRADED: 5,
} as const;

/** What a client does itself to find out. */
export type HealthCheck = Fields<{
  timeout: Duration;
  interval: Duration;
  /** While nobody uses a cluster; 60 s unless given. */
  noTrafficInterval: Duration;
  unhealthyThreshold: NumberValue;
  healthyThreshold: NumberValue;
  httpHealthCheck: Fields<{
    host: string;
    path: string;
    /** The end is the first that does not count; 200 alone unless given. */
    expectedStatuses: readonly Fields<{ start: number; end: number }>[];
  }>;
  tcpHealthCheck: Readonly<Record<never, never>>;
  grpcHealthCheck: Fields<{ serviceName: string; authority: string }>;
}>;

/** For clients and servers of any HTTP. */
export type HttpOptions = Fields<{ idleTimeout: Duration }>;

export type Http1Options = Readonly<Record<never, never>>;

export type Http2Options = Fields<{ maxConcurrentStreams: NumberValue }>;

/** What a connection is hashed by. */
export type HashPolicy = Fields<{ sourceIp: Readonly<Record<never, never>> }>;

/** RE2. */
export type RegexMatcher = Fields<{ regex: string }>;

/** All but `ignoreCase` exclude each other. */
export type StringMatcher = Fields<{
  exact: string;
  prefix: string;
  suffix: string;
  safeRegex: RegexMatcher;
  contains: string;
  ignoreCase: boolean;
}>;

/** `xds.type.matcher.v3.Matcher`: here only what to do in any case. */
export type Matcher = Fields<{ onNoMatch: Fields<{ action: TypedConfig }> }>;

/** See `google_messages.ts`. */
export const CORE_PROTOS: readonly string[] = [
  `
syntax = "proto3";
package envoy.type.v3;

message SemanticVersion {
  uint32 major_number = 1;
  uint32 minor_number = 2;
  uint32 patch = 3;
}

message Int64Range {
  int64 start = 1;
  int64 end = 2;
}

message Percent {
  double value = 1 [(validate.rules).double = {lte: 100, gte: 0}];
}

message HashPolicy {
  message SourceIp {}
  oneof policy_specifier {
    option (validate.required) = true;
    SourceIp source_ip = 1;
  }
}
`,
  `
syntax = "proto3";
package envoy.type.matcher.v3;

message RegexMatcher {
  string regex = 2 [(validate.rules).string = {min_len: 1}];
}

message StringMatcher {
  oneof match_pattern {
    option (validate.required) = true;
    string exact = 1;
    string prefix = 2 [(validate.rules).string = {min_len: 1}];
    string suffix = 3 [(validate.rules).string = {min_len: 1}];
    RegexMatcher safe_regex = 5 [(validate.rules).message = {required: true}];
    string contains = 7 [(validate.rules).string = {min_len: 1}];
  }
  bool ignore_case = 6;
}
`,
  `
syntax = "proto3";
package xds.core.v3;

message TypedExtensionConfig {
  string name = 1 [(validate.rules).string = {min_len: 1}];
  google.protobuf.Any typed_config = 2
      [(validate.rules).any = {required: true}];
}
`,
  `
syntax = "proto3";
package xds.type.matcher.v3;

message Matcher {
  message OnMatch {
    oneof on_match {
      option (validate.required) = true;
      xds.core.v3.TypedExtensionConfig action = 2;
    }
  }
  OnMatch on_no_match = 3;
}
`,
  `
syntax = "proto3";
package envoy.config.core.v3;

enum ApiVersion {
  AUTO = 0;
  V2 = 1;
  V3 = 2;
}

enum RoutingPriority {
  DEFAULT = 0;
  HIGH = 1;
}

enum HealthStatus {
  UNKNOWN = 0;
  HEALTHY = 1;
  UNHEALTHY = 2;
  DRAINING = 3;
  TIMEOUT = 4;
  DEGRADED = 5;
}

message Locality {
  string region = 1;
  string zone = 2;
  string sub_zone = 3;
}

message BuildVersion { envoy.type.v3.SemanticVersion version = 1; }

message Node {
  string id = 1;
  string cluster = 2;
  google.protobuf.Struct metadata = 3;
  Locality locality = 4;
  string user_agent_name = 6;
  oneof user_agent_version_type {
    string user_agent_version = 7;
    BuildVersion user_agent_build_version = 8;
  }
  repeated string client_features = 10;
}

message ControlPlane { string identifier = 1; }

message Metadata {
  map<string, google.protobuf.Struct> filter_metadata = 1
      [(validate.rules).map = {keys: {string: {min_len: 1}}}];
  map<string, google.protobuf.Any> typed_filter_metadata = 2
      [(validate.rules).map = {keys: {string: {min_len: 1}}}];
}

message SocketAddress {
  enum Protocol {
    TCP = 0;
    UDP = 1;
  }
  Protocol protocol = 1 [(validate.rules).enum = {defined_only: true}];
  string address = 2 [(validate.rules).string = {min_len: 1}];
  oneof port_specifier {
    option (validate.required) = true;
    uint32 port_value = 3 [(validate.rules).uint32 = {lte: 65535}];
  }
}

message Address {
  oneof address {
    option (validate.required) = true;
    SocketAddress socket_address = 1;
  }
}

message UdpSocketConfig {
  google.protobuf.UInt64Value max_rx_datagram_size = 1
      [(validate.rules).uint64 = {lt: 65536, gt: 0}];
  google.protobuf.BoolValue prefer_gro = 2;
}

message AggregatedConfigSource {}

message SelfConfigSource {}

message ConfigSource {
  oneof config_source_specifier {
    option (validate.required) = true;
    AggregatedConfigSource ads = 3;
    SelfConfigSource self = 5;
  }
  google.protobuf.Duration initial_fetch_timeout = 4;
  ApiVersion resource_api_version = 6
      [(validate.rules).enum = {defined_only: true}];
}

message TypedExtensionConfig {
  string name = 1 [(validate.rules).string = {min_len: 1}];
  google.protobuf.Any typed_config = 2
      [(validate.rules).any = {required: true}];
}

message TransportSocket {
  string name = 1 [(validate.rules).string = {min_len: 1}];
  oneof config_type { google.protobuf.Any typed_config = 3; }
}

message BackoffStrategy {
  google.protobuf.Duration base_interval = 1
      [(validate.rules).duration = {required: true, gte: {nanos: 1000000}}];
  google.protobuf.Duration max_interval = 2
      [(validate.rules).duration = {gt: {}}];
}

message HealthCheck {
  message HttpHealthCheck {
    string host = 1
        [(validate.rules).string = {well_known_regex: HTTP_HEADER_VALUE}];
    string path = 2
        [(validate.rules).string = {min_len: 1, well_known_regex: HTTP_HEADER_VALUE}];
    repeated envoy.type.v3.Int64Range expected_statuses = 9;
  }
  message TcpHealthCheck {}
  message GrpcHealthCheck {
    string service_name = 1;
    string authority = 2
        [(validate.rules).string = {well_known_regex: HTTP_HEADER_VALUE, strict: false}];
  }
  google.protobuf.Duration timeout = 1
      [(validate.rules).duration = {required: true, gt: {}}];
  google.protobuf.Duration interval = 2
      [(validate.rules).duration = {required: true, gt: {}}];
  google.protobuf.UInt32Value unhealthy_threshold = 4
      [(validate.rules).message = {required: true}];
  google.protobuf.UInt32Value healthy_threshold = 5
      [(validate.rules).message = {required: true}];
  oneof health_checker {
    option (validate.required) = true;
    HttpHealthCheck http_health_check = 8;
    TcpHealthCheck tcp_health_check = 9;
    GrpcHealthCheck grpc_health_check = 11;
  }
  google.protobuf.Duration no_traffic_interval = 12
      [(validate.rules).duration = {gt: {}}];
}

message HttpProtocolOptions { google.protobuf.Duration idle_timeout = 1; }

message Http1ProtocolOptions {}

message Http2ProtocolOptions {
  google.protobuf.UInt32Value max_concurrent_streams = 2
      [(validate.rules).uint32 = {lte: 2147483647, gte: 1}];
}
`,
];
