/**
 * Huffman-coded strings (RFC 7541 §5.2): bytes in, bytes out.
 *
 * @module
 */

import { HpackError } from "./hpack_error.ts";
import {
  ACCEPTS,
  CODE_BITS,
  EMITS,
  FAILS,
  HUFFMAN_CODES,
  NEXT_STATE,
  SYMBOL_SHIFT,
  TRANSITIONS,
} from "./huffman_code.ts";

/** Bytes that `codedBytes` bytes can decode to at most: five bits a symbol. */
export function decodedBytesMax(codedBytes: number): number {
  return Math.floor(codedBytes * 8 / 5);
}

/**
 * Decodes `coded[start, end)` to the start of `into`.
 *
 * @param into Has room for {@linkcode decodedBytesMax} bytes.
 * @returns How many bytes were written.
 * @throws {HpackError} On EOS, or padding that is not up to seven ones.
 */
export function decodeHuffman(
  coded: Uint8Array,
  start: number,
  end: number,
  into: Uint8Array,
): number {
  let written = 0;
  let state = 0;
  let seen = 0;
  for (let offset = start; offset < end; offset++) {
    const byte = coded[offset]!;
    let cell = TRANSITIONS[(state << 4) | (byte >>> 4)]!;
    if (cell & EMITS) into[written++] = cell >>> SYMBOL_SHIFT;
    seen |= cell;
    cell = TRANSITIONS[((cell & NEXT_STATE) << 4) | (byte & 15)]!;
    if (cell & EMITS) into[written++] = cell >>> SYMBOL_SHIFT;
    seen |= cell;
    state = cell & NEXT_STATE;
  }
  // Looked at once, at the end: a failed string is thrown away whole.
  if (seen & FAILS) {
    throw new HpackError(
      "5.2",
      "Cannot decode a Huffman string: it contains EOS",
    );
  }
  if (ACCEPTS[state] === 0) {
    throw new HpackError(
      "5.2",
      "Cannot decode a Huffman string: its padding is longer than 7 bits or not all ones",
    );
  }
  return written;
}

/** Bytes that `text`, a binary string, takes when coded. */
export function huffmanBytes(text: string): number {
  let bits = 0;
  for (let index = 0; index < text.length; index++) {
    bits += CODE_BITS[text.charCodeAt(index)]!;
  }
  return (bits + 7) >>> 3;
}

/** Codes `text`, a binary string, at `offset`; returns the offset behind it. */
export function encodeHuffman(
  text: string,
  into: Uint8Array,
  offset: number,
): number {
  // `pending` holds fewer than eight bits between symbols, so a code of up to
  // 24 bits fits beside them in 32; the rare longer ones go in two halves.
  let pending = 0;
  let pendingBits = 0;
  for (let index = 0; index < text.length; index++) {
    const byte = text.charCodeAt(index);
    let bits = CODE_BITS[byte]!;
    let code = HUFFMAN_CODES[byte]!;
    if (bits > 24) {
      bits -= 16;
      pending = (pending << bits) | (code >>> 16);
      pendingBits += bits;
      while (pendingBits >= 8) {
        pendingBits -= 8;
        into[offset++] = pending >>> pendingBits;
      }
      code &= 0xffff;
      bits = 16;
    }
    pending = (pending << bits) | code;
    pendingBits += bits;
    while (pendingBits >= 8) {
      pendingBits -= 8;
      into[offset++] = pending >>> pendingBits;
    }
  }
  if (pendingBits > 0) {
    // Padding is the start of EOS: ones (§5.2).
    into[offset++] = (pending << (8 - pendingBits)) | (0xff >>> pendingBits);
  }
  return offset;
}
