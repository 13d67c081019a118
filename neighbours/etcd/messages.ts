/**
 * The messages of etcd v3 that are spoken here, by their numbers in etcd's
 * `rpc.proto`, `kv.proto` and `auth`. What is not used is left out: protobuf
 * skips fields that are not known.
 *
 * Whatever is 64 bits wide (lease ids, revisions, the cluster's id) is a
 * decimal string: a lease id does not fit a number.
 *
 * @module
 */

import { parseProto } from "../../proto/grpc/protos.ts";

/** Paths of the methods. */
export const METHODS = {
  range: "/etcdserverpb.KV/Range",
  put: "/etcdserverpb.KV/Put",
  deleteRange: "/etcdserverpb.KV/DeleteRange",
  txn: "/etcdserverpb.KV/Txn",
  watch: "/etcdserverpb.Watch/Watch",
  leaseGrant: "/etcdserverpb.Lease/LeaseGrant",
  leaseRevoke: "/etcdserverpb.Lease/LeaseRevoke",
  leaseKeepAlive: "/etcdserverpb.Lease/LeaseKeepAlive",
  authenticate: "/etcdserverpb.Auth/Authenticate",
} as const;

/** A signed or unsigned integer of 64 bits in decimal. */
export type Int64 = string;

export interface ResponseHeader {
  readonly clusterId: Int64;
  readonly memberId: Int64;
  /** Of the store when the answer was made. */
  readonly revision: Int64;
}

export interface KeyValueMessage {
  readonly key: Uint8Array;
  readonly modRevision: Int64;
  readonly createRevision: Int64;
  readonly value: Uint8Array;
  /** "0": none. */
  readonly lease: Int64;
}

export interface RangeRequest {
  readonly key: Uint8Array;
  /** Absent: one key; `\0`: all from `key` on. */
  readonly rangeEnd?: Uint8Array;
  readonly limit?: number;
  readonly revision?: Int64;
}

export interface RangeResponse {
  readonly header: ResponseHeader;
  readonly kvs: readonly KeyValueMessage[];
  readonly more: boolean;
}

export interface PutRequest {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
  readonly lease?: Int64;
}

export interface DeleteRangeRequest {
  readonly key: Uint8Array;
  readonly rangeEnd?: Uint8Array;
}

export interface HeaderResponse {
  readonly header: ResponseHeader;
}

export interface DeleteRangeResponse extends HeaderResponse {
  readonly deleted: Int64;
}

/** Numbers of `Compare.CompareResult` and `Compare.CompareTarget`. */
export const CompareResult = { EQUAL: 0, GREATER: 1, LESS: 2, NOT_EQUAL: 3 };
export const CompareTarget = { VERSION: 0, CREATE: 1, MOD: 2, VALUE: 3 };

export interface Compare {
  readonly result: number;
  readonly target: number;
  readonly key: Uint8Array;
  readonly createRevision?: Int64;
  readonly modRevision?: Int64;
  readonly value?: Uint8Array;
}

/** Exactly one of them. */
export interface RequestOp {
  readonly requestRange?: RangeRequest;
  readonly requestPut?: PutRequest;
  readonly requestDeleteRange?: DeleteRangeRequest;
}

export interface TxnRequest {
  /** All of these must be so. */
  readonly compare: readonly Compare[];
  /** Done if they are. */
  readonly success: readonly RequestOp[];
  /** Done if not. */
  readonly failure?: readonly RequestOp[];
}

export interface TxnResponse extends HeaderResponse {
  readonly succeeded: boolean;
}

/** Exactly one of them. */
export interface WatchRequest {
  readonly createRequest?: {
    readonly key: Uint8Array;
    readonly rangeEnd: Uint8Array;
    /** First one of interest. */
    readonly startRevision: Int64;
    readonly progressNotify: boolean;
    readonly fragment: boolean;
  };
  readonly progressRequest?: Record<never, never>;
}

export interface WatchResponse {
  /** `null` in some refusals. */
  readonly header: ResponseHeader | null;
  /** "-1": an answer to a progress request, about all watches of the stream. */
  readonly watchId: Int64;
  readonly created: boolean;
  readonly canceled: boolean;
  /** Not "0": what was asked for is gone; the oldest that is left. */
  readonly compactRevision: Int64;
  readonly cancelReason: string;
  /** More events of the same revision follow in the next one. */
  readonly fragment: boolean;
  readonly events: readonly EventMessage[];
}

export interface EventMessage {
  /** 0 is PUT, 1 is DELETE. */
  readonly type: number;
  readonly kv: KeyValueMessage | null;
}

export interface LeaseGrantRequest {
  /** Seconds. */
  readonly TTL: Int64;
}

export interface LeaseGrantResponse {
  readonly ID: Int64;
  readonly TTL: Int64;
  readonly error: string;
}

export interface LeaseRequest {
  readonly ID: Int64;
}

export interface LeaseKeepAliveResponse {
  readonly ID: Int64;
  /** Seconds that it has from now; "0": there is no such lease. */
  readonly TTL: Int64;
}

export interface AuthenticateRequest {
  readonly name: string;
  readonly password: string;
}

export interface AuthenticateResponse {
  readonly token: string;
}

const codec = parseProto(`
syntax = "proto3";
package etcd;

message ResponseHeader {
  uint64 cluster_id = 1;
  uint64 member_id = 2;
  int64 revision = 3;
}
message KeyValue {
  bytes key = 1;
  int64 create_revision = 2;
  int64 mod_revision = 3;
  bytes value = 5;
  int64 lease = 6;
}
message RangeRequest {
  bytes key = 1;
  bytes range_end = 2;
  int64 limit = 3;
  int64 revision = 4;
}
message RangeResponse {
  ResponseHeader header = 1;
  repeated KeyValue kvs = 2;
  bool more = 3;
}
message PutRequest {
  bytes key = 1;
  bytes value = 2;
  int64 lease = 3;
}
message DeleteRangeRequest {
  bytes key = 1;
  bytes range_end = 2;
}
message HeaderResponse {
  ResponseHeader header = 1;
}
message DeleteRangeResponse {
  ResponseHeader header = 1;
  int64 deleted = 2;
}
message Compare {
  int32 result = 1;
  int32 target = 2;
  bytes key = 3;
  oneof target_union {
    int64 create_revision = 5;
    int64 mod_revision = 6;
    bytes value = 7;
  }
}
message RequestOp {
  oneof request {
    RangeRequest request_range = 1;
    PutRequest request_put = 2;
    DeleteRangeRequest request_delete_range = 3;
  }
}
message TxnRequest {
  repeated Compare compare = 1;
  repeated RequestOp success = 2;
  repeated RequestOp failure = 3;
}
message TxnResponse {
  ResponseHeader header = 1;
  bool succeeded = 2;
}
message WatchCreateRequest {
  bytes key = 1;
  bytes range_end = 2;
  int64 start_revision = 3;
  bool progress_notify = 4;
  bool fragment = 8;
}
message WatchProgressRequest {}
message WatchRequest {
  oneof request_union {
    WatchCreateRequest create_request = 1;
    WatchProgressRequest progress_request = 3;
  }
}
message Event {
  int32 type = 1;
  KeyValue kv = 2;
}
message WatchResponse {
  ResponseHeader header = 1;
  int64 watch_id = 2;
  bool created = 3;
  bool canceled = 4;
  int64 compact_revision = 5;
  string cancel_reason = 6;
  bool fragment = 7;
  repeated Event events = 11;
}
message LeaseGrantRequest {
  int64 TTL = 1;
}
message LeaseGrantResponse {
  ResponseHeader header = 1;
  int64 ID = 2;
  int64 TTL = 3;
  string error = 4;
}
message LeaseRequest {
  int64 ID = 1;
}
message LeaseKeepAliveResponse {
  ResponseHeader header = 1;
  int64 ID = 2;
  int64 TTL = 3;
}
message AuthenticateRequest {
  string name = 1;
  string password = 2;
}
message AuthenticateResponse {
  ResponseHeader header = 1;
  string token = 2;
}
`);

/** One per message; see `MessageCodec`. */
export const CODECS = {
  rangeRequest: codec<RangeRequest>("etcd.RangeRequest"),
  rangeResponse: codec<RangeResponse>("etcd.RangeResponse"),
  putRequest: codec<PutRequest>("etcd.PutRequest"),
  deleteRangeRequest: codec<DeleteRangeRequest>("etcd.DeleteRangeRequest"),
  deleteRangeResponse: codec<DeleteRangeResponse>("etcd.DeleteRangeResponse"),
  headerResponse: codec<HeaderResponse>("etcd.HeaderResponse"),
  txnRequest: codec<TxnRequest>("etcd.TxnRequest"),
  txnResponse: codec<TxnResponse>("etcd.TxnResponse"),
  watchRequest: codec<WatchRequest>("etcd.WatchRequest"),
  watchResponse: codec<WatchResponse>("etcd.WatchResponse"),
  leaseGrantRequest: codec<LeaseGrantRequest>("etcd.LeaseGrantRequest"),
  leaseGrantResponse: codec<LeaseGrantResponse>("etcd.LeaseGrantResponse"),
  leaseRequest: codec<LeaseRequest>("etcd.LeaseRequest"),
  leaseKeepAliveResponse: codec<LeaseKeepAliveResponse>(
    "etcd.LeaseKeepAliveResponse",
  ),
  authenticateRequest: codec<AuthenticateRequest>("etcd.AuthenticateRequest"),
  authenticateResponse: codec<AuthenticateResponse>(
    "etcd.AuthenticateResponse",
  ),
} as const;
