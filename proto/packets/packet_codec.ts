/**
 * Packets to protobuf bytes and back (SPEC.md, "Packets").
 *
 * These are the cold packets: a few per connection. DATA is written and read in
 * place by `data_head.ts` and `packet_reader.ts`; this module can do it too,
 * for callers with a whole message.
 *
 * The fields are walked by hand on protobufjs' writer and reader instead of by
 * its reflection: that one generates code from strings at run time, and it
 * writes a bigint as 0 without an error.
 *
 * Like every protobuf decoder it ignores unknown content: unknown fields, known
 * fields of another wire type and unknown packet types. The last of several
 * payloads counts. A type whose payload is missing has all defaults, as Go
 * reads it.
 *
 * @module
 */

import protobuf from "npm:protobufjs@8.8.1/minimal.js";
import { canonicalInt64, highBits, int64FromBits, lowBits } from "./int64.ts";
import {
  type CloseRequest,
  type CloseResponse,
  type Int64,
  type Packet,
  PacketError,
  PacketType,
} from "./packet.ts";

const { Reader, Writer } = protobuf;
type Reader = protobuf.Reader;
type Writer = protobuf.Writer;

const NO_BYTES = new Uint8Array(0);
const SHORT_TEXT_BYTES = 64;
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Encodes one packet, without the gRPC prefix (`CallBody.sendMessage` adds it).
 *
 * @throws {RangeError} If an identifier is not an exact 64-bit integer.
 */
export function encodePacket(packet: Packet): Uint8Array {
  const writer = new Writer();
  if (packet.type === "UNKNOWN") {
    return writer.uint32(tag(TYPE_FIELD, VARINT)).int32(packet.code).finish();
  }
  const code = PacketType[packet.type];
  if (code !== 0) writer.uint32(tag(TYPE_FIELD, VARINT)).int32(code);
  writer.uint32(tag(PAYLOAD_FIELD[packet.type], LENGTH_DELIMITED)).fork();
  writePayload(writer, packet);
  return writer.ldelim().finish();
}

/**
 * Decodes one packet from exactly its bytes, without the gRPC prefix.
 *
 * @returns For DATA, `data` is a view of `bytes`.
 * @throws {PacketError} If the bytes are not a protobuf `Packet`.
 */
export function decodePacket(
  bytes: Uint8Array,
  start = 0,
  end: number = bytes.length,
): Packet {
  try {
    const reader = new Reader(bytes);
    reader.pos = start;
    reader.len = end;
    return readPacket(reader);
  } catch (cause) {
    if (cause instanceof PacketError) throw cause;
    // The reader answers every malformed byte with an Error or a RangeError of
    // its own, and no other call in there can fail.
    const detail = cause instanceof Error ? cause.message : String(cause);
    throw new PacketError(
      `Cannot decode a packet of ${end - start} bytes: ${detail}`,
      { cause },
    );
  }
}

function writePayload(
  writer: Writer,
  packet: Exclude<Packet, { type: "UNKNOWN" }>,
): void {
  switch (packet.type) {
    case "DIAL_REQ":
      writeText(writer, 1, packet.protocol);
      writeText(writer, 2, packet.address);
      return writeInt64(writer, 3, packet.random);
    case "DIAL_RSP":
      writeText(writer, 1, packet.error);
      writeInt64(writer, 2, packet.connectId);
      return writeInt64(writer, 3, packet.random);
    case "DATA":
      writeInt64(writer, 1, packet.connectId);
      if (packet.data.length > 0) {
        writer.uint32(tag(3, LENGTH_DELIMITED)).bytes(packet.data);
      } else if (packet.emptyDatagram) {
        writer.uint32(tag(EMPTY_DATAGRAM_FIELD, VARINT)).bool(true);
      }
      return;
    case "CLOSE_REQ":
      writeInt64(writer, 1, packet.connectId);
      return writeReset(writer, packet);
    case "CLOSE_RSP":
      writeText(writer, 1, packet.error);
      writeInt64(writer, 2, packet.connectId);
      return writeReset(writer, packet);
    case "DIAL_CLS":
      return writeInt64(writer, 1, packet.random);
    case "DRAIN":
      return;
    case "DATA_END":
      return writeInt64(writer, 1, packet.connectId);
    default:
      packet satisfies never;
  }
}

function writeReset(
  writer: Writer,
  packet: CloseRequest | CloseResponse,
): void {
  writeText(writer, RESET_FIELD, packet.reset);
  if (packet.lost) writer.uint32(tag(LOST_FIELD, VARINT)).bool(true);
}

function writeText(writer: Writer, field: number, text: string): void {
  // A lone surrogate has no UTF-8; Go peers refuse the whole message for one.
  if (text !== "") {
    writer.uint32(tag(field, LENGTH_DELIMITED)).string(text.toWellFormed());
  }
}

function writeInt64(writer: Writer, field: number, value: Int64): void {
  const exact = canonicalInt64(value);
  if (exact === 0) return;
  writer.uint32(tag(field, VARINT)).int64({
    low: lowBits(exact) | 0,
    high: highBits(exact) | 0,
    unsigned: false,
  } as protobuf.Long);
}

function readPacket(reader: Reader): Packet {
  let code = 0;
  let type: KnownType | undefined;
  let fields = new Fields();
  while (reader.pos < reader.len) {
    const next = reader.tag();
    const field = next >>> 3;
    const payload = TYPE_BY_FIELD.get(field);
    if (field === TYPE_FIELD && (next & 7) === VARINT) {
      code = reader.int32();
    } else if (payload !== undefined && (next & 7) === LENGTH_DELIMITED) {
      // A oneof: a second member replaces the first, the same member is merged.
      if (payload !== type) fields = new Fields();
      type = payload;
      const { len } = reader;
      const size = sizeOf(reader);
      reader.len = reader.pos + size;
      readFields(reader, SHAPES[payload], fields);
      reader.len = len;
    } else {
      reader.skipType(next & 7, 0, field);
    }
  }
  const named = TYPE_BY_CODE.get(code);
  if (named === undefined) return { type: "UNKNOWN", code };
  return assemble(named, named === type ? fields : new Fields());
}

function assemble(type: KnownType, fields: Fields): Packet {
  switch (type) {
    case "DIAL_REQ":
      return {
        type,
        protocol: fields.text(1),
        address: fields.text(2),
        random: fields.int64(3),
      };
    case "DIAL_RSP":
      return {
        type,
        error: fields.text(1),
        connectId: fields.int64(2),
        random: fields.int64(3),
      };
    case "DATA": {
      const data = fields.bytes(3);
      const connectId = fields.int64(1);
      return data.length === 0 && fields.flag(EMPTY_DATAGRAM_FIELD)
        ? { type, connectId, data, emptyDatagram: true }
        : { type, connectId, data };
    }
    case "CLOSE_REQ":
      return { type, connectId: fields.int64(1), ...resetOf(fields) };
    case "CLOSE_RSP":
      return {
        type,
        error: fields.text(1),
        connectId: fields.int64(2),
        ...resetOf(fields),
      };
    case "DIAL_CLS":
      return { type, random: fields.int64(1) };
    case "DRAIN":
      return { type };
    case "DATA_END":
      return { type, connectId: fields.int64(1) };
  }
}

function resetOf(fields: Fields): { reset: string; lost?: true } {
  const reset = fields.text(RESET_FIELD);
  return fields.flag(LOST_FIELD) ? { reset, lost: true } : { reset };
}

/** The values of one payload by field number; absent ones have their default. */
class Fields {
  /** By field number; a Map would cost more to make than all the rest. */
  readonly #values: (FieldValue | undefined)[] = [];

  set(field: number, value: FieldValue): void {
    this.#values[field] = value;
  }

  text(field: number): string {
    const value = this.#values[field];
    return typeof value === "string" ? value : "";
  }

  int64(field: number): Int64 {
    const value = this.#values[field];
    return typeof value === "number" || typeof value === "bigint" ? value : 0;
  }

  bytes(field: number): Uint8Array {
    const value = this.#values[field];
    return value instanceof Uint8Array ? value : NO_BYTES;
  }

  flag(field: number): boolean {
    return this.#values[field] === true;
  }
}

function readFields(
  reader: Reader,
  shape: Readonly<Record<number, FieldKind>>,
  into: Fields,
): void {
  while (reader.pos < reader.len) {
    const next = reader.tag();
    const field = next >>> 3;
    const kind = shape[field];
    if (kind === undefined || (next & 7) !== WIRE_TYPE_OF[kind]) {
      reader.skipType(next & 7, 0, field);
    } else {
      into.set(field, readValue(reader, kind));
    }
  }
}

function readValue(reader: Reader, kind: FieldKind): FieldValue {
  switch (kind) {
    case "text":
      return readText(readBytes(reader));
    case "bytes":
      return readBytes(reader);
    case "flag":
      return reader.bool();
    case "int64":
      return readInt64(reader);
  }
}

/** A view of a length-delimited field; the reader's own `bytes` copies. */
function readBytes(reader: Reader): Uint8Array {
  const size = sizeOf(reader);
  const start = reader.pos;
  reader.pos = start + size;
  return reader.buf.subarray(start, start + size);
}

/** How long the length-delimited field is that begins here. */
function sizeOf(reader: Reader): number {
  const size = reader.size();
  const start = reader.pos;
  if (size > reader.len - start) {
    throw new PacketError(
      `Cannot decode a packet: a field claims ${size} bytes, ` +
        `${reader.len - start} are left`,
    );
  }
  return size;
}

function readText(bytes: Uint8Array): string {
  // Addresses and protocols are ASCII; the platform's decoder takes longer to
  // call than a short loop to run.
  if (bytes.length <= SHORT_TEXT_BYTES && bytes.every(isAscii)) {
    return String.fromCharCode.apply(null, bytes as unknown as number[]);
  }
  try {
    return UTF8.decode(bytes);
  } catch (cause) {
    throw new PacketError("Cannot decode a packet: a text is not UTF-8", {
      cause,
    });
  }
}

function isAscii(byte: number): boolean {
  return byte < 0x80;
}

function readInt64(reader: Reader): Int64 {
  // Without its optional `long` package protobufjs returns a rounded number;
  // that must never happen unnoticed, even when a bundler left the package out.
  const value: unknown = reader.int64();
  if (typeof value === "number") return canonicalInt64(value);
  const { low, high } = value as protobuf.Long;
  return int64FromBits(low, high);
}

// The fields of packets on the wire (`konnectivity.proto`, and ours; SPEC.md,
// "Packets"): number and kind.

/** Field of `Packet` that carries the type. */
const TYPE_FIELD = 1;

/** Field of `Packet` that carries each type's payload. */
const PAYLOAD_FIELD = {
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
const RESET_FIELD = 15;
const LOST_FIELD = 16;
const EMPTY_DATAGRAM_FIELD = 15;

/** A packet type that we know. */
type KnownType = keyof typeof PacketType;
/** How a field is read. */
export type FieldKind = "text" | "int64" | "bytes" | "flag";
/** The result. */
type FieldValue = string | Int64 | Uint8Array | boolean;

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

const TYPE_BY_CODE: ReadonlyMap<number, KnownType> = new Map(
  (Object.keys(PacketType) as KnownType[]).map((
    name,
  ) => [PacketType[name], name]),
);

const TYPE_BY_FIELD: ReadonlyMap<number, KnownType> = new Map(
  (Object.keys(PAYLOAD_FIELD) as KnownType[]).map((
    name,
  ) => [PAYLOAD_FIELD[name], name]),
);

/** Wire types of protobuf. */
const VARINT = 0;
export const LENGTH_DELIMITED = 2;

const WIRE_TYPE_OF: Readonly<Record<FieldKind, number>> = {
  text: LENGTH_DELIMITED,
  bytes: LENGTH_DELIMITED,
  int64: VARINT,
  flag: VARINT,
};

/** The tag of a field. */
export function tag(field: number, wireType: number): number {
  return ((field << 3) | wireType) >>> 0;
}
