/**
 * The payload of each frame type but DATA, read from whole payloads in the
 * order of RFC 9113 §6. The streaming around it is in `frame_decoder.ts`.
 *
 * @module
 */

import {
  type Frame,
  FrameFlag,
  FrameType,
  type PriorityFrame,
  type Setting,
  UINT31_MAX,
} from "./frame.ts";
import { readUint16, readUint32 } from "../bytes/byte_arrays.ts";
import { type Blast, ErrorCode, WireError } from "./wire_error.ts";

/** The 9 bytes in front of each payload (§4.1). */
export interface FrameHeader {
  readonly length: number;
  readonly code: number;
  readonly flags: number;
  readonly streamId: number;
}

/** What §6 demands of each type's header, in the order of the codes. */
interface HeaderRule {
  readonly name: keyof typeof FrameType;
  readonly section: string;
  readonly on: "stream" | "connection" | "either";
  readonly bytes?: number;
  readonly bytesMin?: number;
}

const RULES: readonly HeaderRule[] = [
  { name: "DATA", section: "6.1", on: "stream" },
  { name: "HEADERS", section: "6.2", on: "stream" },
  { name: "PRIORITY", section: "6.3", on: "stream", bytes: 5 },
  { name: "RST_STREAM", section: "6.4", on: "stream", bytes: 4 },
  { name: "SETTINGS", section: "6.5", on: "connection" },
  { name: "PUSH_PROMISE", section: "6.6", on: "stream", bytesMin: 4 },
  { name: "PING", section: "6.7", on: "connection", bytes: 8 },
  { name: "GOAWAY", section: "6.8", on: "connection", bytesMin: 8 },
  { name: "WINDOW_UPDATE", section: "6.9", on: "either", bytes: 4 },
  { name: "CONTINUATION", section: "6.10", on: "stream" },
];

/** The name of a frame's type in the RFC's spelling, for messages. */
export function frameName(header: FrameHeader): string {
  return RULES[header.code]?.name ?? `frame type 0x${header.code.toString(16)}`;
}

/**
 * Checks everything about a known type that shows in its header, before any of
 * its payload is gathered.
 *
 * @throws {WireError}
 */
export function checkHeader(header: FrameHeader): void {
  const { on, section, bytes, bytesMin } = RULES[header.code]!;
  const { length, streamId, code, flags } = header;
  if (on !== "either" && (on === "stream") !== (streamId !== 0)) {
    throw new WireError(
      ErrorCode.PROTOCOL_ERROR,
      section,
      `Cannot accept ${frameName(header)} on stream ${streamId}`,
    );
  }
  if (bytes !== undefined && length !== bytes) {
    // §6.3 is the only section that limits a wrong size to its stream.
    const blast: Blast = code === FrameType.PRIORITY
      ? { scope: "stream", streamId }
      : { scope: "connection" };
    throw sizeError(header, section, `${bytes}`, blast);
  }
  if (bytesMin !== undefined && length < bytesMin) {
    throw sizeError(header, section, `at least ${bytesMin}`);
  }
  if (code === FrameType.SETTINGS) checkSettingsSize(header);
  if (code === FrameType.DATA && flags & FrameFlag.PADDED && length === 0) {
    throw sizeError(header, "4.2", "at least 1");
  }
}

/**
 * Decodes a whole payload whose header has passed {@linkcode checkHeader}.
 * Bytes in the frame are views of `bytes`; types that have none make no view,
 * for they are most of what comes on a short connection.
 *
 * @param at Where it begins in `bytes`.
 * @throws {WireError}
 */
export function decodePayload(
  header: FrameHeader,
  bytes: Uint8Array,
  at: number,
): Frame {
  const { streamId, flags, length } = header;
  switch (header.code) {
    case FrameType.PRIORITY:
      return decodePriority(streamId, bytes, at);
    case FrameType.RST_STREAM:
      return {
        type: "RST_STREAM",
        streamId,
        errorCode: readUint32(bytes, at),
      };
    case FrameType.SETTINGS:
      return decodeSettings(header, bytes, at);
    case FrameType.WINDOW_UPDATE:
      return decodeWindowUpdate(streamId, bytes, at);
    case FrameType.GOAWAY:
      return {
        type: "GOAWAY",
        lastStreamId: readUint32(bytes, at) & UINT31_MAX,
        errorCode: readUint32(bytes, at + 4),
        debugData: bytes.subarray(at + 8, at + length),
      };
  }
  const payload = bytes.subarray(at, at + length);
  switch (header.code) {
    case FrameType.HEADERS:
      return decodeHeaders(header, payload);
    case FrameType.PUSH_PROMISE:
      return decodePushPromise(header, payload);
    case FrameType.PING:
      return {
        type: "PING",
        ack: (flags & FrameFlag.ACK) !== 0,
        opaque: payload,
      };
    case FrameType.CONTINUATION:
      return {
        type: "CONTINUATION",
        streamId,
        endHeaders: (flags & FrameFlag.END_HEADERS) !== 0,
        fragment: payload,
      };
    default:
      throw new TypeError(`Cannot decode a payload of ${frameName(header)}`);
  }
}

// --- §6.2 HEADERS ------------------------------------------------------------

function decodeHeaders(header: FrameHeader, payload: Uint8Array): Frame {
  const { flags, streamId } = header;
  let fragment = stripPadding(header, payload, "6.2");
  const type = "HEADERS";
  const endStream = (flags & FrameFlag.END_STREAM) !== 0;
  const endHeaders = (flags & FrameFlag.END_HEADERS) !== 0;
  if (!(flags & FrameFlag.PRIORITY)) {
    return { type, streamId, endStream, endHeaders, fragment };
  }
  if (fragment.length < 5) throw sizeError(header, "4.2", "5 for the priority");
  const dependsOn = readUint32(fragment, 0) & UINT31_MAX;
  fragment = fragment.subarray(5);
  return { type, streamId, endStream, endHeaders, fragment, dependsOn };
}

/** Removes the padding of §6.1 from a HEADERS or PUSH_PROMISE payload. */
function stripPadding(
  header: FrameHeader,
  payload: Uint8Array,
  section: string,
): Uint8Array {
  if (!(header.flags & FrameFlag.PADDED)) return payload;
  const padLength = payload[0];
  if (padLength === undefined) throw sizeError(header, "4.2", "at least 1");
  if (padLength >= payload.length) {
    throw new WireError(
      ErrorCode.PROTOCOL_ERROR,
      section,
      `Cannot strip ${padLength} bytes of padding from a payload of ${payload.length}`,
    );
  }
  return payload.subarray(1, payload.length - padLength);
}

// --- §6.3 PRIORITY -----------------------------------------------------------

function decodePriority(
  streamId: number,
  bytes: Uint8Array,
  at: number,
): PriorityFrame {
  const dependsOn = readUint32(bytes, at) & UINT31_MAX;
  return { type: "PRIORITY", streamId, dependsOn };
}

// --- §6.5 SETTINGS -----------------------------------------------------------

function checkSettingsSize(header: FrameHeader): void {
  if (header.flags & FrameFlag.ACK && header.length !== 0) {
    throw sizeError(header, "6.5", "0 with ACK");
  }
  if (header.length % 6 !== 0) {
    throw sizeError(header, "6.5", "a multiple of 6");
  }
}

function decodeSettings(
  header: FrameHeader,
  bytes: Uint8Array,
  start: number,
): Frame {
  const settings: Setting[] = [];
  const end = start + header.length;
  for (let at = start; at < end; at += 6) {
    settings.push({
      id: readUint16(bytes, at),
      value: readUint32(bytes, at + 2),
    });
  }
  return {
    type: "SETTINGS",
    ack: (header.flags & FrameFlag.ACK) !== 0,
    settings,
  };
}

// --- §6.6 PUSH_PROMISE -------------------------------------------------------

function decodePushPromise(header: FrameHeader, payload: Uint8Array): Frame {
  const rest = stripPadding(header, payload, "6.6");
  if (rest.length < 4) throw sizeError(header, "4.2", "4 for the stream id");
  return {
    type: "PUSH_PROMISE",
    streamId: header.streamId,
    promisedId: readUint32(rest, 0) & UINT31_MAX,
    endHeaders: (header.flags & FrameFlag.END_HEADERS) !== 0,
    fragment: rest.subarray(4),
  };
}

// --- §6.9 WINDOW_UPDATE ------------------------------------------------------

function decodeWindowUpdate(
  streamId: number,
  bytes: Uint8Array,
  at: number,
): Frame {
  const increment = readUint32(bytes, at) & UINT31_MAX;
  if (increment === 0) {
    throw new WireError(
      ErrorCode.PROTOCOL_ERROR,
      "6.9",
      "Cannot apply WINDOW_UPDATE: increment is 0",
      streamId === 0 ? { scope: "connection" } : { scope: "stream", streamId },
    );
  }
  return { type: "WINDOW_UPDATE", streamId, increment };
}

function sizeError(
  header: FrameHeader,
  section: string,
  wanted: string,
  blast?: Blast,
): WireError {
  return new WireError(
    ErrorCode.FRAME_SIZE_ERROR,
    section,
    `Cannot accept ${
      frameName(header)
    }: ${header.length} bytes, wanted ${wanted}`,
    blast,
  );
}
