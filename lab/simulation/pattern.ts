/**
 * Bytes that say where they belong: by conduit, direction and offset, so that
 * whoever reads one knows whether it is the right one.
 *
 * @module
 */

import { Buffer } from "node:buffer";

/** A prime, so that no window or frame size is a multiple of it. */
const PERIOD = 65_521;

/** Bytes in front of each datagram: its number and its length. */
const DATAGRAM_HEAD_BYTES = 6;

/** A piece that begins within the first period lies in it in one part. */
const TABLE = makeTable(4 * PERIOD);

/** The longest piece that {@linkcode Pattern.piece} can give. */
export const PIECE_BYTES_MAX = 3 * PERIOD;

/** The bytes of one direction of one conduit. */
export class Pattern {
  readonly #start: number;

  /** @param key Differs between directions and conduits. */
  constructor(key: number) {
    this.#start = Math.imul(key + 1, 7919) >>> 0;
  }

  /** `bytes` bytes from `offset` on; a view, at most `PIECE_BYTES_MAX`. */
  piece(offset: number, bytes: number): Uint8Array {
    const at = (this.#start + offset) % PERIOD;
    return TABLE.subarray(at, at + bytes);
  }

  /** Where `chunk` differs from what belongs at `offset`; −1 if nowhere. */
  differenceAt(offset: number, chunk: Uint8Array): number {
    for (let at = 0; at < chunk.length; at += PERIOD) {
      const part = chunk.subarray(at, at + PERIOD);
      const wanted = this.piece(offset + at, part.length);
      if (equal(part, wanted)) continue;
      for (let index = 0; index < part.length; index++) {
        if (part[index] !== wanted[index]) return offset + at + index;
      }
    }
    return -1;
  }

  /** The datagram of this number; shorter ones than its head are empty. */
  datagram(number: number, bytes: number): Uint8Array {
    if (bytes < DATAGRAM_HEAD_BYTES) return new Uint8Array(0);
    const datagram = this.piece(number, bytes).slice();
    const view = new DataView(datagram.buffer);
    view.setUint32(0, number);
    view.setUint16(4, bytes);
    return datagram;
  }

  /** The number of a datagram that has arrived; −1 when it is not whole. */
  numberOf(datagram: Uint8Array): number {
    if (datagram.length < DATAGRAM_HEAD_BYTES) return -1;
    const view = new DataView(datagram.buffer, datagram.byteOffset);
    const number = view.getUint32(0);
    if (view.getUint16(4) !== datagram.length) return -1;
    const rest = DATAGRAM_HEAD_BYTES;
    const wanted = this.piece(number, datagram.length).subarray(rest);
    return equal(datagram.subarray(rest), wanted) ? number : -1;
  }
}

function equal(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}

function makeTable(bytes: number): Uint8Array {
  const table = new Uint8Array(bytes);
  let state = 0x2545_f491;
  for (let at = 0; at < PERIOD; at++) {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b_3c6d) + at;
    table[at] = state >>> 24;
  }
  for (let at = PERIOD; at < bytes; at++) table[at] = table[at - PERIOD]!;
  return table;
}
