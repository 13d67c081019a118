/**
 * Huffman-coded strings (RFC 7541 §5.2): bytes in, bytes out.
 *
 * @module
 */

import { HpackError } from "./header_field.ts";

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

// The Huffman code of RFC 7541 Appendix B, and the tables made from it.
//
// The code is canonical: among codes of one length, symbols count up, and each
// length goes on where the shorter one ended. So the 257 lengths are the whole
// table; the codes, and the machine that decodes them, are computed on load.

/** Lengths in bits of the codes of the bytes 0–255. */
// deno-fmt-ignore: sixteen to a row.
export const CODE_BITS: Uint8Array = Uint8Array.of(
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
  28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
   6, 10, 10, 12, 13,  6,  8, 11, 10, 10,  8, 11,  8,  6,  6,  6,
   5,  5,  5,  6,  6,  6,  6,  6,  6,  6,  7,  8, 15,  6, 12, 10,
  13,  6,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,
   7,  7,  7,  7,  7,  7,  7,  7,  8,  7,  8, 13, 19, 13, 14,  6,
  15,  5,  6,  5,  6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,
   6,  7,  6,  5,  5,  6,  7,  7,  7,  7,  7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
  24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
  21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
  26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
);

/** The longest code, which is also that of EOS: thirty ones. */
const CODE_BITS_MAX = 30;
const EOS = 256;

/** The codes of the bytes 0–255, right-aligned in {@linkcode CODE_BITS} bits. */
export const HUFFMAN_CODES: Uint32Array = canonicalCodes();

/** Bits of a {@linkcode TRANSITIONS} cell. */
const NEXT_STATE = 0xff;
const SYMBOL_SHIFT = 8;
const EMITS = 0x1_0000;
/** EOS was decoded, which is an error wherever it stands (§5.2). */
const FAILS = 0x2_0000;

/**
 * The decoder: state × 16 + nibble → cell. A state is an inner node of the code
 * tree; four bits end at most one symbol because the shortest code has five.
 * 256 states, 16 KiB: it stays in the first-level cache, unlike a byte-wide one.
 */
const TRANSITIONS: Uint32Array = new Uint32Array(256 * 16);

/**
 * 1 for states in which a string may end: at most seven bits, all ones, behind
 * the last symbol (§5.2).
 */
export const ACCEPTS: Uint8Array = new Uint8Array(256);

buildMachine();

function canonicalCodes(): Uint32Array {
  const codes = new Uint32Array(256);
  let next = 0;
  for (let bits = 1; bits <= CODE_BITS_MAX; bits++) {
    for (let symbol = 0; symbol < 256; symbol++) {
      if (CODE_BITS[symbol] === bits) codes[symbol] = next++;
    }
    next *= 2;
  }
  return codes;
}

function buildMachine(): void {
  // The tree: child[node * 2 + bit] is an inner node, or a leaf as ~symbol.
  const child: number[] = [0, 0];
  const insert = (symbol: number, code: number, bits: number): void => {
    let node = 0;
    for (let left = bits - 1; left > 0; left--) {
      const slot = node * 2 + ((code >>> left) & 1);
      if (child[slot] === 0) {
        child[slot] = child.length / 2;
        child.push(0, 0);
      }
      node = child[slot]!;
    }
    child[node * 2 + (code & 1)] = ~symbol;
  };
  for (let symbol = 0; symbol < 256; symbol++) {
    insert(symbol, HUFFMAN_CODES[symbol]!, CODE_BITS[symbol]!);
  }
  insert(EOS, 2 ** CODE_BITS_MAX - 1, CODE_BITS_MAX);

  for (let state = 0; state < 256; state++) {
    for (let nibble = 0; nibble < 16; nibble++) {
      TRANSITIONS[state * 16 + nibble] = walk(state, nibble);
    }
  }
  for (let node = 0, ones = 0; ones <= 7; ones++) {
    ACCEPTS[node] = 1;
    node = child[node * 2 + 1]!;
  }

  function walk(state: number, nibble: number): number {
    let node = state;
    let emitted = 0;
    for (let bit = 3; bit >= 0; bit--) {
      node = child[node * 2 + ((nibble >>> bit) & 1)]!;
      if (node >= 0) continue;
      if (~node === EOS) return FAILS;
      emitted = EMITS | (~node << SYMBOL_SHIFT);
      node = 0;
    }
    return emitted | node;
  }
}
