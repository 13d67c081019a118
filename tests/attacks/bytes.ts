/**
 * Frames as an attacker writes them: byte by byte, with nothing that keeps
 * them legal. Deliberately not the project's own encoder, which refuses most.
 *
 * @module
 */

import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import { CLIENT_PREFACE } from "../../proto/streams/frame_writer.ts";

/** Frame types of RFC 9113 §6. */
export const Type = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
  UNKNOWN: 0x2a,
} as const;

export const END_STREAM = 1;
export const ACK = 1;
export const END_HEADERS = 4;

/** One frame. */
export function frame(
  type: number,
  flags: number,
  streamId: number,
  payload: Uint8Array = new Uint8Array(0),
): Uint8Array {
  const bytes = new Uint8Array(9 + payload.length);
  bytes.set([payload.length >> 16, payload.length >> 8, payload.length]);
  bytes.set([type, flags], 3);
  bytes.set(uint32(streamId), 5);
  bytes.set(payload, 9);
  return bytes;
}

/** Big-endian. */
export function uint32(value: number): Uint8Array {
  return new Uint8Array([value >>> 24, value >>> 16, value >>> 8, value]);
}

/** `count` pieces, each made for its number. */
export function many(
  count: number,
  make: (index: number) => Uint8Array,
): Uint8Array {
  return joinedBytes(Array.from({ length: count }, (_, index) => make(index)));
}

/** One entry of a SETTINGS payload. */
export function setting(id: number, value: number): Uint8Array {
  return joinedBytes([new Uint8Array([id >> 8, id]), uint32(value)]);
}

/** SETTINGS with these entries. */
export function settings(...entries: readonly Uint8Array[]): Uint8Array {
  return frame(Type.SETTINGS, 0, 0, joinedBytes(entries));
}

/** What every HTTP/2 client says first, with these settings. */
export function greeting(...entries: readonly Uint8Array[]): Uint8Array {
  return joinedBytes([CLIENT_PREFACE, settings(...entries)]);
}

/** A gRPC request without its body, in literals: it leaves no table behind. */
export function grpcHead(path: string): Uint8Array {
  return joinedBytes([
    literal(":method", "POST"),
    literal(":scheme", "https"),
    literal(":path", path),
    literal(":authority", "tunnel"),
    literal("content-type", "application/grpc"),
    literal("te", "trailers"),
  ]);
}

/** A header field as HPACK's literal: flat strings, no table. */
export function literal(name: string, value: string): Uint8Array {
  const text = new TextEncoder();
  return joinedBytes([
    new Uint8Array([0]),
    hpackString(text.encode(name)),
    hpackString(text.encode(value)),
  ]);
}

/** The same, put into the dynamic table (RFC 7541 §6.2.1). */
export function indexedLiteral(name: string, value: string): Uint8Array {
  const bytes = literal(name, value);
  bytes[0] = 0x40;
  return bytes;
}

/** RFC 7541 §5.2, not Huffman-coded. */
function hpackString(bytes: Uint8Array): Uint8Array {
  if (bytes.length < 127) {
    return joinedBytes([new Uint8Array([bytes.length]), bytes]);
  }
  const prefix = [127];
  for (let rest = bytes.length - 127;; rest >>= 7) {
    if (rest < 128) {
      prefix.push(rest);
      break;
    }
    prefix.push((rest & 127) | 128);
  }
  return joinedBytes([new Uint8Array(prefix), bytes]);
}
