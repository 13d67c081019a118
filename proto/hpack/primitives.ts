/**
 * The two types that HPACK is made of: integers with an N-bit prefix (RFC 7541
 * §5.1), and strings, whose code points are bytes here (§5.2).
 *
 * It does not know their meaning; the flag bits above a prefix are the
 * caller's.
 *
 * @module
 */

import { HpackError } from "./header_field.ts";

/**
 * The greatest integer we accept: that of a SETTINGS value. Lengths and indexes
 * are checked against much smaller limits by their readers.
 */
export const INTEGER_MAX = 2 ** 32 - 1;

/**
 * Continuation bytes after the prefix. Five carry 35 bits, enough for
 * {@linkcode INTEGER_MAX}; without a limit a peer could pad one integer with a
 * whole block of 0x80 (§7.4).
 */
export const INTEGER_CONTINUATION_BYTES_MAX = 5;

/** A place in a block; the readers of this folder move it on. */
export interface Cursor {
  readonly block: Uint8Array;
  offset: number;
}

/**
 * Reads the integer whose first byte is at the cursor.
 *
 * @param prefixBits 1–8: how many low bits of the first byte belong to it.
 * @throws {HpackError} If the block ends inside it, or it is too long or large.
 */
export function readInteger(cursor: Cursor, prefixBits: number): number {
  const { block } = cursor;
  const prefixMax = (1 << prefixBits) - 1;
  const first = block[cursor.offset];
  if (first === undefined) throw truncated();
  cursor.offset++;
  let value = first & prefixMax;
  if (value < prefixMax) return value;
  for (let count = 0; count < INTEGER_CONTINUATION_BYTES_MAX; count++) {
    const byte = block[cursor.offset];
    if (byte === undefined) throw truncated();
    cursor.offset++;
    // Not a shift: the fifth byte reaches beyond 32 bits.
    value += (byte & 0x7f) * 2 ** (7 * count);
    if (byte < 0x80) {
      if (value <= INTEGER_MAX) return value;
      break;
    }
  }
  throw new HpackError(
    "5.1",
    `Cannot read an integer: it is longer than ${
      INTEGER_CONTINUATION_BYTES_MAX + 1
    } bytes or greater than ${INTEGER_MAX}`,
  );
}

/** Bytes that the longest integer of ours takes. */
export const INTEGER_BYTES_MAX = 1 + INTEGER_CONTINUATION_BYTES_MAX;

/**
 * Writes `value` at `offset` and returns the offset behind it.
 *
 * @param flags The bits of the first byte above the prefix, in place.
 */
export function writeInteger(
  into: Uint8Array,
  offset: number,
  prefixBits: number,
  flags: number,
  value: number,
): number {
  const prefixMax = (1 << prefixBits) - 1;
  if (value < prefixMax) {
    into[offset] = flags | value;
    return offset + 1;
  }
  into[offset++] = flags | prefixMax;
  let rest = value - prefixMax;
  while (rest >= 0x80) {
    into[offset++] = (rest % 0x80) | 0x80;
    rest = Math.floor(rest / 0x80);
  }
  into[offset++] = rest;
  return offset;
}

function truncated(): HpackError {
  return new HpackError(
    "5.1",
    "Cannot read an integer: the header block ends inside it",
  );
}

// Bytes to strings whose code points are the bytes, and back.

/**
 * The binary string of `bytes[start, end)`.
 *
 * Eight at a time: for the short strings of headers this takes half the time of
 * one at a time or of a call with a spread view, and `TextDecoder` has no label
 * for plain bytes.
 */
export function binaryString(
  bytes: Uint8Array,
  start: number,
  end: number,
): string {
  let text = "";
  let at = start;
  for (; at + 8 <= end; at += 8) {
    text += String.fromCharCode(
      bytes[at]!,
      bytes[at + 1]!,
      bytes[at + 2]!,
      bytes[at + 3]!,
      bytes[at + 4]!,
      bytes[at + 5]!,
      bytes[at + 6]!,
      bytes[at + 7]!,
    );
  }
  for (; at < end; at++) text += String.fromCharCode(bytes[at]!);
  return text;
}

/** Writes a binary string at `offset` and returns the offset behind it. */
export function writeBinaryString(
  text: string,
  into: Uint8Array,
  offset: number,
): number {
  for (let index = 0; index < text.length; index++) {
    into[offset + index] = text.charCodeAt(index);
  }
  return offset + text.length;
}
