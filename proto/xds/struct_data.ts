/**
 * `google.protobuf.Struct` as plain data, and back.
 *
 * Layer: xDS. Plain data is what JSON can hold. It is read within limits,
 * because a node keeps its metadata for as long as it is connected, and written
 * in one order, because versions are made of bytes.
 *
 * @module
 */

import { GrpcError, StatusCode } from "../grpc/status.ts";
import type { Struct, Value } from "./xds_messages.ts";

/** Objects and lists within each other. */
export const STRUCT_DEPTH_MAX = 16;

/** Characters of all keys and texts, and one for every value. */
export const STRUCT_SIZE_MAX = 65_536;

/** What JSON can hold. */
export type PlainValue =
  | null
  | boolean
  | number
  | string
  | readonly PlainValue[]
  | PlainObject;

interface PlainObject {
  readonly [key: string]: PlainValue;
}

/**
 * Reads a message.
 *
 * @throws {GrpcError} RESOURCE_EXHAUSTED over {@linkcode STRUCT_DEPTH_MAX} or
 *   {@linkcode STRUCT_SIZE_MAX}.
 */
export function plainOf(struct: Struct): PlainObject {
  const room = { left: STRUCT_SIZE_MAX };
  return objectOf(struct, room, 1);
}

/**
 * Makes a message. What JSON would leave out is left out: members that are
 * `undefined` or functions.
 */
export function structOf(data: Readonly<Record<string, unknown>>): Struct {
  const fields: [string, Value][] = [];
  for (const [key, datum] of Object.entries(data).sort(byKey)) {
    const value = valueOf(datum);
    if (value !== undefined) fields.push([key, value]);
  }
  return { fields: Object.fromEntries(fields) };
}

function byKey([one]: [string, unknown], [other]: [string, unknown]): number {
  return one < other ? -1 : 1;
}

interface Room {
  left: number;
}

function objectOf(struct: Struct, room: Room, depth: number): PlainObject {
  const entries = Object.entries(struct.fields ?? {});
  // Entries are defined, not assigned: a key may be `__proto__`.
  return Object.fromEntries(entries.map(([key, value]) => {
    take(room, key.length);
    return [key, plainValueOf(value, room, depth)];
  }));
}

function plainValueOf(value: Value, room: Room, depth: number): PlainValue {
  if (depth > STRUCT_DEPTH_MAX) {
    throw new GrpcError(
      StatusCode.RESOURCE_EXHAUSTED,
      `Cannot read a google.protobuf.Struct: it is more than ${STRUCT_DEPTH_MAX} levels deep`,
    );
  }
  take(room, 1 + (value.stringValue?.length ?? 0));
  if (value.structValue) return objectOf(value.structValue, room, depth + 1);
  if (value.listValue) {
    return (value.listValue.values ?? []).map((one) =>
      plainValueOf(one, room, depth + 1)
    );
  }
  return value.stringValue ?? value.numberValue ?? value.boolValue ?? null;
}

function take(room: Room, size: number): void {
  room.left -= size;
  if (room.left >= 0) return;
  throw new GrpcError(
    StatusCode.RESOURCE_EXHAUSTED,
    `Cannot read a google.protobuf.Struct: it has more than ${STRUCT_SIZE_MAX} characters and values`,
  );
}

function valueOf(data: unknown): Value | undefined {
  switch (typeof data) {
    case "string":
      return { stringValue: data };
    case "number":
      return { numberValue: data };
    case "boolean":
      return { boolValue: data };
    case "object":
      break;
    default:
      return undefined;
  }
  if (data === null) return { nullValue: 0 };
  if (Array.isArray(data)) {
    return {
      listValue: {
        values: data.map((one) => valueOf(one) ?? { nullValue: 0 }),
      },
    };
  }
  return { structValue: structOf(data as Record<string, unknown>) };
}
