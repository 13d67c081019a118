/**
 * The fields of packets on the wire (`konnectivity.proto`, and ours; SPEC.md,
 * "Packets"): by what number, of what kind.
 *
 * @module
 */

import { type Int64, PacketType } from "./packet.ts";

/** Field of `Packet` that carries the type. */
export const TYPE_FIELD = 1;

/** Field of `Packet` that carries each type's payload. */
export const PAYLOAD_FIELD = {
  DIAL_REQ: 2,
  DIAL_RSP: 3,
  DATA: 4,
  CLOSE_REQ: 5,
  CLOSE_RSP: 6,
  DIAL_CLS: 7,
  DRAIN: 8,
  /** Ours; far from where upstream would put its next one. */
  DATA_END: 64,
} as const;

/** Our fields in Konnectivity's payloads, away from where it would add some. */
export const RESET_FIELD = 15;
export const LOST_FIELD = 16;
export const EMPTY_DATAGRAM_FIELD = 15;

/** A packet type that we know. */
export type KnownType = keyof typeof PacketType;
/** How a field is read. */
export type FieldKind = "text" | "int64" | "bytes" | "flag";
/** What comes of it. */
export type FieldValue = string | Int64 | Uint8Array | boolean;

/** Which fields of each payload are read, and how. */
export const SHAPES: Readonly<
  Record<KnownType, Readonly<Record<number, FieldKind>>>
> = {
  DIAL_REQ: { 1: "text", 2: "text", 3: "int64" },
  DIAL_RSP: { 1: "text", 2: "int64", 3: "int64" },
  // Field 2 is an error text that no peer sends and no peer reads.
  DATA: { 1: "int64", 3: "bytes", [EMPTY_DATAGRAM_FIELD]: "flag" },
  CLOSE_REQ: { 1: "int64", [RESET_FIELD]: "text", [LOST_FIELD]: "flag" },
  CLOSE_RSP: {
    1: "text",
    2: "int64",
    [RESET_FIELD]: "text",
    [LOST_FIELD]: "flag",
  },
  DIAL_CLS: { 1: "int64" },
  DRAIN: {},
  DATA_END: { 1: "int64" },
};

export const TYPE_BY_CODE: ReadonlyMap<number, KnownType> = new Map(
  (Object.keys(PacketType) as KnownType[]).map((
    name,
  ) => [PacketType[name], name]),
);

export const TYPE_BY_FIELD: ReadonlyMap<number, KnownType> = new Map(
  (Object.keys(PAYLOAD_FIELD) as KnownType[]).map((
    name,
  ) => [PAYLOAD_FIELD[name], name]),
);

/** Wire types of protobuf. */
export const VARINT = 0;
export const LENGTH_DELIMITED = 2;

export const WIRE_TYPE_OF: Readonly<Record<FieldKind, number>> = {
  text: LENGTH_DELIMITED,
  bytes: LENGTH_DELIMITED,
  int64: VARINT,
  flag: VARINT,
};

/** What stands in front of a field. */
export function tag(field: number, wireType: number): number {
  return ((field << 3) | wireType) >>> 0;
}
