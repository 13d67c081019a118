/**
 * HTTP/2 frames to bytes (RFC 9113 §4 and §6), written in place into a buffer
 * of the caller's at an offset. Never pads and never splits: the caller has
 * already cut the payload to the peer's frame size.
 *
 * `writeFrameHeader` is what the bulk path needs; `writeFrame` writes any frame
 * whole.
 *
 * @module
 */

import {
  type Frame,
  FRAME_HEADER_BYTES,
  FrameFlag,
  FrameType,
} from "./frame.ts";
import { writeUint16, writeUint32 } from "../bytes/byte_arrays.ts";

/** Writes the 9 bytes of §4.1. */
export function writeFrameHeader(
  into: Uint8Array,
  at: number,
  length: number,
  code: number,
  flags: number,
  streamId: number,
): void {
  into[at] = length >>> 16;
  into[at + 1] = length >>> 8;
  into[at + 2] = length;
  into[at + 3] = code;
  into[at + 4] = flags;
  writeUint32(into, at + 5, streamId);
}

/** Bytes that {@linkcode writeFrame} will write, header included. */
export function frameBytes(frame: Frame): number {
  return FRAME_HEADER_BYTES + payloadBytes(frame);
}

/** Writes `frame` at `at`; there must be room for {@linkcode frameBytes}. */
export function writeFrame(into: Uint8Array, at: number, frame: Frame): void {
  const length = payloadBytes(frame);
  const { code, flags, streamId } = headerOf(frame);
  writeFrameHeader(into, at, length, code, flags, streamId);
  writePayload(into, at + FRAME_HEADER_BYTES, frame);
}

function payloadBytes(frame: Frame): number {
  switch (frame.type) {
    case "DATA":
      return frame.data.length;
    case "HEADERS":
      return frame.fragment.length + (frame.dependsOn === undefined ? 0 : 5);
    case "PRIORITY":
      return 5;
    case "RST_STREAM":
    case "WINDOW_UPDATE":
      return 4;
    case "SETTINGS":
      return frame.settings.length * 6;
    case "PUSH_PROMISE":
      return 4 + frame.fragment.length;
    case "PING":
      return 8;
    case "GOAWAY":
      return 8 + frame.debugData.length;
    case "CONTINUATION":
      return frame.fragment.length;
    case "UNKNOWN":
      return frame.payloadBytes;
  }
}

function headerOf(
  frame: Frame,
): { code: number; flags: number; streamId: number } {
  const streamId = "streamId" in frame ? frame.streamId : 0;
  if (frame.type === "UNKNOWN") return { code: frame.code, flags: 0, streamId };
  return { code: FrameType[frame.type], flags: flagsOf(frame), streamId };
}

function flagsOf(frame: Frame): number {
  let flags = 0;
  if ("ack" in frame && frame.ack) flags |= FrameFlag.ACK;
  if ("endStream" in frame && frame.endStream) flags |= FrameFlag.END_STREAM;
  if ("endHeaders" in frame && frame.endHeaders) flags |= FrameFlag.END_HEADERS;
  if (frame.type === "HEADERS" && frame.dependsOn !== undefined) {
    flags |= FrameFlag.PRIORITY;
  }
  return flags;
}

function writePayload(into: Uint8Array, at: number, frame: Frame): void {
  switch (frame.type) {
    case "DATA":
      into.set(frame.data, at);
      return;
    case "HEADERS": {
      let start = at;
      if (frame.dependsOn !== undefined) {
        writePriority(into, at, frame.dependsOn);
        start += 5;
      }
      into.set(frame.fragment, start);
      return;
    }
    case "PRIORITY":
      writePriority(into, at, frame.dependsOn);
      return;
    case "RST_STREAM":
      writeUint32(into, at, frame.errorCode);
      return;
    case "SETTINGS":
      frame.settings.forEach(({ id, value }, index) => {
        writeUint16(into, at + index * 6, id);
        writeUint32(into, at + index * 6 + 2, value);
      });
      return;
    case "PUSH_PROMISE":
      writeUint32(into, at, frame.promisedId);
      into.set(frame.fragment, at + 4);
      return;
    case "PING":
      into.set(frame.opaque, at);
      return;
    case "GOAWAY":
      writeUint32(into, at, frame.lastStreamId);
      writeUint32(into, at + 4, frame.errorCode);
      into.set(frame.debugData, at + 8);
      return;
    case "WINDOW_UPDATE":
      writeUint32(into, at, frame.increment);
      return;
    case "CONTINUATION":
      into.set(frame.fragment, at);
      return;
    case "UNKNOWN":
      into.fill(0, at, at + frame.payloadBytes);
      return;
  }
}

/** The weight that §5.3 of RFC 7540 had as its default, 16, encoded minus 1. */
const WEIGHT_DEFAULT = 15;

function writePriority(into: Uint8Array, at: number, dependsOn: number): void {
  writeUint32(into, at, dependsOn);
  into[at + 4] = WEIGHT_DEFAULT;
}
