/**
 * Which cluster gets a request: `envoy.config.route.v3`.
 *
 * See `google_messages.ts` about the texts.
 *
 * @module
 */

import type {
  Metadata,
  RegexMatcher,
  StringMatcher,
  TypedConfig,
} from "./core_messages.ts";
import type { Fields } from "./fields.ts";
import type { BoolValue, Duration, NumberValue } from "./google_messages.ts";

/** All but `name`, `invertMatch` and `treatMissingHeaderAsEmpty` exclude each other. */
export type HeaderMatcher = Fields<{
  name: string;
  exactMatch: string;
  rangeMatch: Fields<{ start: number; end: number }>;
  presentMatch: boolean;
  invertMatch: boolean;
  prefixMatch: string;
  suffixMatch: string;
  safeRegexMatch: RegexMatcher;
  containsMatch: string;
  stringMatch: StringMatcher;
  treatMissingHeaderAsEmpty: boolean;
}>;

/** The first four exclude each other; Envoy and gRPC demand one of them. */
export type RouteMatch = Fields<{
  prefix: string;
  path: string;
  safeRegex: RegexMatcher;
  /** `/a` matches `/a` and `/a/b`, and not `/ab`; gRPC does not know it. */
  pathSeparatedPrefix: string;
  caseSensitive: BoolValue;
  headers: readonly HeaderMatcher[];
}>;

/** One of the first four in each. */
export type RouteHashPolicy = Fields<{
  header: Fields<{ headerName: string }>;
  cookie: Fields<{ name: string; ttl: Duration; path: string }>;
  connectionProperties: Fields<{ sourceIp: boolean }>;
  /** gRPC knows `io.grpc.channel_id` (gRFC A42), the same for a channel's life. */
  filterState: Fields<{ key: string }>;
  terminal: boolean;
}>;

export type RetryPolicy = Fields<{
  /** Such as `connect-failure,refused-stream`. */
  retryOn: string;
  numRetries: NumberValue;
  perTryTimeout: Duration;
  /** Which priority is asked next: a {@linkcode PreviousPriorities}. */
  retryPriority: TypedConfig;
  /** Endpoints that are not asked again: {@linkcode PREVIOUS_HOSTS}. */
  retryHostPredicate: readonly TypedConfig[];
  /** How often another one is looked for; then any will do. */
  hostSelectionRetryMaxAttempts: number;
}>;

/** What leaves out endpoints that were asked already; it has no settings. */
export const PREVIOUS_HOSTS = "envoy.retry_host_predicates.previous_hosts";

/** What leaves out priorities in which somebody was asked already. */
export const PREVIOUS_PRIORITIES = "envoy.retry_priorities.previous_priorities";

/** Settings of {@linkcode PREVIOUS_PRIORITIES}. */
export type PreviousPriorities = Fields<{
  /** After so many attempts in one the next is taken; 1 or more. */
  updateFrequency: number;
}>;

export type RouteAction = Fields<{
  cluster: string;
  weightedClusters: Fields<{
    clusters: readonly Fields<{ name: string; weight: NumberValue }>[];
  }>;
  /** Of the whole request; 15 s unless given, 0 for never. gRPC does not read it. */
  timeout: Duration;
  retryPolicy: RetryPolicy;
  hashPolicy: readonly RouteHashPolicy[];
  idleTimeout: Duration;
  upgradeConfigs: readonly Fields<
    { upgradeType: string; enabled: BoolValue }
  >[];
  maxStreamDuration: Fields<{
    maxStreamDuration: Duration;
    grpcTimeoutHeaderMax: Duration;
  }>;
}>;

/** Of `route` and `directResponse` one. */
export type Route = Fields<{
  match: RouteMatch;
  route: RouteAction;
  metadata: Metadata;
  /** gRPC ignores a route that has it, and refuses what matches. */
  directResponse: Fields<{ status: number }>;
  name: string;
}>;

export type VirtualHost = Fields<{
  name: string;
  /** At least one, each in one virtual host only: exact, `*.x`, `x.*` or `*`. */
  domains: readonly string[];
  routes: readonly Route[];
}>;

export type RouteConfiguration = Fields<{
  name: string;
  virtualHosts: readonly VirtualHost[];
  /** Whether unknown clusters are an error; not by RDS unless said. */
  validateClusters: BoolValue;
  ignorePortInHostMatching: boolean;
  metadata: Metadata;
}>;

/** See `google_messages.ts`. */
export const ROUTE_PROTOS: readonly string[] = [
  `
syntax = "proto3";
package envoy.config.route.v3;

message HeaderMatcher {
  string name = 1
      [(validate.rules).string = {min_len: 1, well_known_regex: HTTP_HEADER_NAME, strict: false}];
  oneof header_match_specifier {
    string exact_match = 4;
    envoy.type.v3.Int64Range range_match = 6;
    bool present_match = 7;
    string prefix_match = 9 [(validate.rules).string = {min_len: 1}];
    string suffix_match = 10 [(validate.rules).string = {min_len: 1}];
    envoy.type.matcher.v3.RegexMatcher safe_regex_match = 11;
    string contains_match = 12 [(validate.rules).string = {min_len: 1}];
    envoy.type.matcher.v3.StringMatcher string_match = 13;
  }
  bool invert_match = 8;
  bool treat_missing_header_as_empty = 14;
}

message RouteMatch {
  oneof path_specifier {
    option (validate.required) = true;
    string prefix = 1;
    string path = 2;
    envoy.type.matcher.v3.RegexMatcher safe_regex = 10
        [(validate.rules).message = {required: true}];
    string path_separated_prefix = 14
        [(validate.rules).string = {pattern: "^[^?#]+[^?#/]$"}];
  }
  google.protobuf.BoolValue case_sensitive = 4;
  repeated HeaderMatcher headers = 6;
}

message WeightedCluster {
  message ClusterWeight {
    string name = 1;
    google.protobuf.UInt32Value weight = 2;
  }
  repeated ClusterWeight clusters = 1
      [(validate.rules).repeated = {min_items: 1}];
}

message RetryPolicy {
  message RetryPriority {
    string name = 1 [(validate.rules).string = {min_len: 1}];
    oneof config_type { google.protobuf.Any typed_config = 3; }
  }
  message RetryHostPredicate {
    string name = 1 [(validate.rules).string = {min_len: 1}];
    oneof config_type { google.protobuf.Any typed_config = 3; }
  }
  string retry_on = 1;
  google.protobuf.UInt32Value num_retries = 2;
  google.protobuf.Duration per_try_timeout = 3;
  RetryPriority retry_priority = 4;
  repeated RetryHostPredicate retry_host_predicate = 5;
  int64 host_selection_retry_max_attempts = 6;
}

message RouteAction {
  message HashPolicy {
    message Header {
      string header_name = 1
          [(validate.rules).string = {min_len: 1, well_known_regex: HTTP_HEADER_NAME, strict: false}];
    }
    message Cookie {
      string name = 1 [(validate.rules).string = {min_len: 1}];
      google.protobuf.Duration ttl = 2;
      string path = 3;
    }
    message ConnectionProperties { bool source_ip = 1; }
    message FilterState {
      string key = 1 [(validate.rules).string = {min_len: 1}];
    }
    oneof policy_specifier {
      option (validate.required) = true;
      Header header = 1;
      Cookie cookie = 2;
      ConnectionProperties connection_properties = 3;
      FilterState filter_state = 6;
    }
    bool terminal = 4;
  }
  message UpgradeConfig {
    string upgrade_type = 1
        [(validate.rules).string = {min_len: 1, well_known_regex: HTTP_HEADER_VALUE, strict: false}];
    google.protobuf.BoolValue enabled = 2;
  }
  message MaxStreamDuration {
    google.protobuf.Duration max_stream_duration = 1;
    google.protobuf.Duration grpc_timeout_header_max = 2;
  }
  oneof cluster_specifier {
    option (validate.required) = true;
    string cluster = 1 [(validate.rules).string = {min_len: 1}];
    WeightedCluster weighted_clusters = 3;
  }
  google.protobuf.Duration timeout = 8;
  RetryPolicy retry_policy = 9;
  repeated HashPolicy hash_policy = 15;
  google.protobuf.Duration idle_timeout = 24;
  repeated UpgradeConfig upgrade_configs = 25;
  MaxStreamDuration max_stream_duration = 36;
}

message DirectResponseAction {
  uint32 status = 1 [(validate.rules).uint32 = {lt: 600, gte: 200}];
}

message Route {
  RouteMatch match = 1 [(validate.rules).message = {required: true}];
  oneof action {
    option (validate.required) = true;
    RouteAction route = 2;
    DirectResponseAction direct_response = 7;
  }
  envoy.config.core.v3.Metadata metadata = 4;
  string name = 14;
}

message VirtualHost {
  string name = 1 [(validate.rules).string = {min_len: 1}];
  repeated string domains = 2
      [(validate.rules).repeated = {
        min_items: 1,
        items: {string: {well_known_regex: HTTP_HEADER_VALUE, strict: false}}
      }];
  repeated Route routes = 3;
}

message RouteConfiguration {
  string name = 1;
  repeated VirtualHost virtual_hosts = 2;
  google.protobuf.BoolValue validate_clusters = 7;
  bool ignore_port_in_host_matching = 14;
  envoy.config.core.v3.Metadata metadata = 17;
}
`,
  `
syntax = "proto3";
package envoy.extensions.retry.host.previous_hosts.v3;

message PreviousHostsPredicate {}
`,
  `
syntax = "proto3";
package envoy.extensions.retry.priority.previous_priorities.v3;

message PreviousPrioritiesConfig {
  int32 update_frequency = 1 [(validate.rules).int32 = {gt: 0}];
}
`,
];
