/**
 * The types of Google that xDS is made of: `Any`, `Struct`, durations, numbers
 * whose absence means something, and `google.rpc.Status`.
 *
 * Texts like this one are our own subset of what is published as xDS v3. They
 * stand in no `.proto` file, for whoever wants to talk to us has the published
 * ones; a test compares names, numbers, types and labels with those.
 *
 * @module
 */

import type { Fields } from "./fields.ts";

/** `google.protobuf.Any`: some message, and which. */
export type Any = Fields<{
  /** Such as `type.googleapis.com/google.rpc.Status`. */
  typeUrl: string;
  value: Uint8Array;
}>;

/** `google.protobuf.Duration`; see {@linkcode durationOf}. */
export type Duration = Fields<{
  seconds: number;
  /** 0 to 999,999,999. */
  nanos: number;
}>;

/** `UInt32Value` and its like: there, or not there. */
export type NumberValue = Fields<{ value: number }>;

/** `google.protobuf.BoolValue`. */
export type BoolValue = Fields<{ value: boolean }>;

/** `google.protobuf.Struct`; `struct_data.ts` turns it into plain data. */
export type Struct = Fields<{ fields: Readonly<Record<string, Value>> }>;

/** `google.protobuf.Value`: one of these. */
export type Value = Fields<{
  /** Always 0. */
  nullValue: number;
  numberValue: number;
  stringValue: string;
  boolValue: boolean;
  structValue: Struct;
  listValue: Fields<{ values: readonly Value[] }>;
}>;

/** `google.rpc.Status`. */
export type RpcStatus = Fields<{
  /** As gRPC numbers them. */
  code: number;
  message: string;
  details: readonly Any[];
}>;

/** `ms`, whole ones or not, as the message. */
export function durationOf(ms: number): Duration {
  const seconds = Math.floor(ms / 1000);
  return { seconds, nanos: Math.round((ms - seconds * 1000) * 1e6) };
}

/** Milliseconds of a message. */
export function msOf({ seconds = 0, nanos = 0 }: Duration): number {
  return seconds * 1000 + nanos / 1e6;
}

/** See the module description. */
export const GOOGLE_PROTOS: readonly string[] = [
  `
syntax = "proto3";
package google.protobuf;

message Any {
  string type_url = 1;
  bytes value = 2;
}

message Duration {
  int64 seconds = 1;
  int32 nanos = 2;
}

message UInt32Value { uint32 value = 1; }
message UInt64Value { uint64 value = 1; }
message BoolValue { bool value = 1; }

message Struct { map<string, Value> fields = 1; }

message Value {
  oneof kind {
    NullValue null_value = 1;
    double number_value = 2;
    string string_value = 3;
    bool bool_value = 4;
    Struct struct_value = 5;
    ListValue list_value = 6;
  }
}

enum NullValue { NULL_VALUE = 0; }

message ListValue { repeated Value values = 1; }
`,
  `
syntax = "proto3";
package google.rpc;

message Status {
  int32 code = 1;
  string message = 2;
  repeated google.protobuf.Any details = 3;
}
`,
];
