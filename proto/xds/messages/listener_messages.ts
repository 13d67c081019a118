/**
 * Where programs come in, and which filters take them: `envoy.config.listener.v3`
 * and the filters for TCP, UDP and HTTP.
 *
 * See `google_messages.ts` about the texts.
 *
 * @module
 */

import type {
  Address,
  BackoffStrategy,
  ConfigSource,
  HashPolicy,
  Http2Options,
  HttpOptions,
  Matcher,
  Metadata,
  TypedConfig,
  UdpSocketConfig,
} from "./core_messages.ts";
import type { Fields } from "./fields.ts";
import type {
  Any,
  BoolValue,
  Duration,
  NumberValue,
} from "./google_messages.ts";
import type { RouteConfiguration } from "./route_messages.ts";

export type FilterChain = Fields<{
  filters: readonly TypedConfig[];
  name: string;
}>;

export type Listener = Fields<{
  name: string;
  address: Address;
  filterChains: readonly FilterChain[];
  perConnectionBufferLimitBytes: NumberValue;
  metadata: Metadata;
  listenerFilters: readonly TypedConfig[];
  /** Makes it a listener for datagrams. */
  udpListenerConfig: Fields<{ downstreamSocketConfig: UdpSocketConfig }>;
  /** For gRPC clients, which listen nowhere: an {@linkcode HttpConnectionManager}. */
  apiListener: Fields<{ apiListener: Any }>;
  bindToPort: BoolValue;
  statPrefix: string;
  enableReusePort: BoolValue;
}>;

/** Of `cluster` and `weightedClusters` one. */
export type TcpProxy = Fields<{
  /** Envoy demands it. */
  statPrefix: string;
  cluster: string;
  weightedClusters: Fields<{
    /** Weights are 1 or more. */
    clusters: readonly Fields<{ name: string; weight: number }>[];
  }>;
  downstreamIdleTimeout: Duration;
  upstreamIdleTimeout: Duration;
  maxConnectAttempts: NumberValue;
  /** After so long without a byte either way; 1 h unless given, 0 for never. */
  idleTimeout: Duration;
  /** At most one. */
  hashPolicy: readonly HashPolicy[];
  /** Between two attempts; none unless given. Envoy knows it since 1.34. */
  backoffOptions: BackoffStrategy;
}>;

/** Of `cluster` (deprecated) and `matcher` one. */
export type UdpProxyConfig = Fields<{
  /** Envoy demands it. */
  statPrefix: string;
  cluster: string;
  /** Of a session; 60 s unless given. */
  idleTimeout: Duration;
  /** One of the two in each, at most one of them. */
  hashPolicies: readonly Fields<{ sourceIp: boolean; key: string }>[];
  upstreamSocketConfig: UdpSocketConfig;
  usePerPacketLoadBalancing: boolean;
  /** Its action is a {@linkcode UdpRoute}. */
  matcher: Matcher;
}>;

export type UdpRoute = Fields<{ cluster: string }>;

/** `HttpConnectionManager.CodecType`. */
export const CodecType = { AUTO: 0, HTTP1: 1, HTTP2: 2, HTTP3: 3 } as const;

/** Of `rds` and `routeConfig` one. */
export type HttpConnectionManager = Fields<{
  /** One of {@linkcode CodecType}. */
  codecType: number;
  /** Envoy demands it. */
  statPrefix: string;
  rds: Fields<{ configSource: ConfigSource; routeConfigName: string }>;
  routeConfig: RouteConfiguration;
  /** The router last; gRPC refuses the listener without. */
  httpFilters: readonly Fields<
    { name: string; typedConfig: Any; isOptional: boolean }
  >[];
  http2ProtocolOptions: Http2Options;
  useRemoteAddress: BoolValue;
  generateRequestId: BoolValue;
  /** gRPC refuses anything but 0. */
  xffNumTrustedHops: number;
  upgradeConfigs: readonly Fields<
    { upgradeType: string; enabled: BoolValue }
  >[];
  /** 5 min unless given, 0 for never. */
  streamIdleTimeout: Duration;
  commonHttpProtocolOptions: HttpOptions;
}>;

/** See `google_messages.ts`. */
export const LISTENER_PROTOS: readonly string[] = [
  `
syntax = "proto3";
package envoy.config.listener.v3;

message Filter {
  string name = 1 [(validate.rules).string = {min_len: 1}];
  oneof config_type { google.protobuf.Any typed_config = 4; }
}

message FilterChain {
  repeated Filter filters = 3;
  string name = 7;
}

message ListenerFilter {
  string name = 1 [(validate.rules).string = {min_len: 1}];
  oneof config_type { google.protobuf.Any typed_config = 3; }
}

message ApiListener { google.protobuf.Any api_listener = 1; }

message UdpListenerConfig {
  envoy.config.core.v3.UdpSocketConfig downstream_socket_config = 5;
}

message Listener {
  string name = 1;
  envoy.config.core.v3.Address address = 2;
  repeated FilterChain filter_chains = 3;
  google.protobuf.UInt32Value per_connection_buffer_limit_bytes = 5;
  envoy.config.core.v3.Metadata metadata = 6;
  repeated ListenerFilter listener_filters = 9;
  UdpListenerConfig udp_listener_config = 18;
  ApiListener api_listener = 19;
  google.protobuf.BoolValue bind_to_port = 26;
  string stat_prefix = 28;
  google.protobuf.BoolValue enable_reuse_port = 29;
}
`,
  `
syntax = "proto3";
package envoy.extensions.filters.network.tcp_proxy.v3;

message TcpProxy {
  message WeightedCluster {
    message ClusterWeight {
      string name = 1 [(validate.rules).string = {min_len: 1}];
      uint32 weight = 2 [(validate.rules).uint32 = {gte: 1}];
    }
    repeated ClusterWeight clusters = 1
        [(validate.rules).repeated = {min_items: 1}];
  }
  string stat_prefix = 1 [(validate.rules).string = {min_len: 1}];
  oneof cluster_specifier {
    option (validate.required) = true;
    string cluster = 2;
    WeightedCluster weighted_clusters = 10;
  }
  google.protobuf.Duration downstream_idle_timeout = 3;
  google.protobuf.Duration upstream_idle_timeout = 4;
  google.protobuf.UInt32Value max_connect_attempts = 7
      [(validate.rules).uint32 = {gte: 1}];
  google.protobuf.Duration idle_timeout = 8;
  repeated envoy.type.v3.HashPolicy hash_policy = 11
      [(validate.rules).repeated = {max_items: 1}];
  envoy.config.core.v3.BackoffStrategy backoff_options = 18;
}
`,
  `
syntax = "proto3";
package envoy.extensions.filters.udp.udp_proxy.v3;

message UdpProxyConfig {
  message HashPolicy {
    oneof policy_specifier {
      option (validate.required) = true;
      bool source_ip = 1 [(validate.rules).bool = {const: true}];
      string key = 2 [(validate.rules).string = {min_len: 1}];
    }
  }
  string stat_prefix = 1 [(validate.rules).string = {min_len: 1}];
  oneof route_specifier {
    option (validate.required) = true;
    string cluster = 2 [(validate.rules).string = {min_len: 1}];
    xds.type.matcher.v3.Matcher matcher = 9;
  }
  google.protobuf.Duration idle_timeout = 3;
  repeated HashPolicy hash_policies = 5
      [(validate.rules).repeated = {max_items: 1}];
  envoy.config.core.v3.UdpSocketConfig upstream_socket_config = 6;
  bool use_per_packet_load_balancing = 7;
}

message Route { string cluster = 1 [(validate.rules).string = {min_len: 1}]; }
`,
  `
syntax = "proto3";
package envoy.extensions.filters.network.http_connection_manager.v3;

message HttpConnectionManager {
  enum CodecType {
    AUTO = 0;
    HTTP1 = 1;
    HTTP2 = 2;
    HTTP3 = 3;
  }
  message UpgradeConfig {
    string upgrade_type = 1;
    google.protobuf.BoolValue enabled = 3;
  }
  CodecType codec_type = 1 [(validate.rules).enum = {defined_only: true}];
  string stat_prefix = 2 [(validate.rules).string = {min_len: 1}];
  oneof route_specifier {
    option (validate.required) = true;
    Rds rds = 3;
    envoy.config.route.v3.RouteConfiguration route_config = 4;
  }
  repeated HttpFilter http_filters = 5;
  envoy.config.core.v3.Http2ProtocolOptions http2_protocol_options = 9;
  google.protobuf.BoolValue use_remote_address = 14;
  google.protobuf.BoolValue generate_request_id = 15;
  uint32 xff_num_trusted_hops = 19;
  repeated UpgradeConfig upgrade_configs = 23;
  google.protobuf.Duration stream_idle_timeout = 24;
  envoy.config.core.v3.HttpProtocolOptions common_http_protocol_options = 35;
}

message Rds {
  envoy.config.core.v3.ConfigSource config_source = 1
      [(validate.rules).message = {required: true}];
  string route_config_name = 2;
}

message HttpFilter {
  string name = 1 [(validate.rules).string = {min_len: 1}];
  oneof config_type { google.protobuf.Any typed_config = 4; }
  bool is_optional = 6;
}
`,
  `
syntax = "proto3";
package envoy.extensions.filters.http.router.v3;

message Router {}
`,
];
