/**
 * The same bytes cut into different chunks: what comes out of a reader must
 * not depend on where the network cut.
 *
 * @module
 */

import type { FuzzTarget } from "./target.ts";
import { Prng } from "../support/memory/prng.ts";

/** Randomness that depends on the input alone (FNV-1a). */
export function prngOf(input: Uint8Array): Prng {
  let hash = 0x811c_9dc5;
  for (const byte of input) hash = Math.imul(hash ^ byte, 0x0100_0193);
  return new Prng(hash >>> 0);
}

/**
 * `input` in chunks of random lengths, mostly short ones, some empty. Each is a
 * copy that the receiver may spoil.
 */
export function cut(input: Uint8Array, prng: Prng): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  const lengthMax = prng.pick([1, 2, 7, 40, 1000]);
  let at = 0;
  while (at < input.length) {
    const length = prng.below(lengthMax + 1);
    chunks.push(input.slice(at, at + length));
    at += length;
  }
  return chunks;
}

/** How heads are cut: into lines. */
export const LINES: Pick<FuzzTarget, "split" | "repair"> = {
  split(input) {
    const lines: Uint8Array[] = [];
    for (let at = 0; at < input.length;) {
      const feed = input.indexOf(0x0a, at);
      const end = feed < 0 ? input.length : feed + 1;
      lines.push(input.subarray(at, end));
      at = end;
    }
    return lines;
  },

  repair(record) {
    return record.at(-1) === 0x0a
      ? record
      : Uint8Array.of(...record, 0x0d, 0x0a);
  },
};
