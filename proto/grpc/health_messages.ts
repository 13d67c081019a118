/**
 * The messages of `grpc.health.v1`. The text is that of `proto/health.proto`;
 * a test keeps the two equal.
 *
 * @module
 */

import { type MessageCodec, parseProto } from "./protos.ts";

/** `grpc.health.v1.HealthCheckResponse.ServingStatus`. */
export const ServingStatus = {
  UNKNOWN: 0,
  SERVING: 1,
  NOT_SERVING: 2,
  SERVICE_UNKNOWN: 3,
} as const;

/** One of {@linkcode ServingStatus}. */
export type ServingStatus = typeof ServingStatus[keyof typeof ServingStatus];

export interface HealthCheckRequest {
  /** Empty: the server as a whole. */
  readonly service: string;
}

export interface HealthCheckResponse {
  readonly status: ServingStatus;
}

export interface HealthListResponse {
  readonly statuses: Readonly<Record<string, HealthCheckResponse>>;
}

/** The text of `proto/health.proto`. */
export const HEALTH_PROTO = `// The standard health checking protocol of gRPC
// (https://github.com/grpc/grpc/blob/master/doc/health-checking.md), as far as
// its wire format goes. Embedded in proto/grpc/health_messages.ts; a test keeps
// the two equal.

syntax = "proto3";

package grpc.health.v1;

service Health {
  // The status of one service now; NOT_FOUND when it is unknown.
  rpc Check(HealthCheckRequest) returns (HealthCheckResponse);
  // The status of all services now.
  rpc List(HealthListRequest) returns (HealthListResponse);
  // The status of one service now and after every change. An unknown service
  // is SERVICE_UNKNOWN, for it may still come.
  rpc Watch(HealthCheckRequest) returns (stream HealthCheckResponse);
}

message HealthCheckRequest {
  // Empty: the server as a whole.
  string service = 1;
}

message HealthCheckResponse {
  enum ServingStatus {
    UNKNOWN = 0;
    SERVING = 1;
    NOT_SERVING = 2;
    SERVICE_UNKNOWN = 3; // only in Watch
  }
  ServingStatus status = 1;
}

message HealthListRequest {}

message HealthListResponse {
  map<string, HealthCheckResponse> statuses = 1;
}
`;

const lookup = parseProto(HEALTH_PROTO);

export const healthCheckRequest: MessageCodec<HealthCheckRequest> = lookup(
  "grpc.health.v1.HealthCheckRequest",
);
export const healthCheckResponse: MessageCodec<HealthCheckResponse> = lookup(
  "grpc.health.v1.HealthCheckResponse",
);
export const healthListResponse: MessageCodec<HealthListResponse> = lookup(
  "grpc.health.v1.HealthListResponse",
);
