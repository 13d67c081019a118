/**
 * A reader with the mistake that readers have: it believes a length.
 *
 * @module
 */

import { joinedBytes } from "../../../proto/bytes/byte_arrays.ts";
import type { FuzzTarget } from "../target.ts";

/** Type byte, length byte, payload. */
function record(type: number, text: string): Uint8Array {
  return Uint8Array.of(type, text.length, ...new TextEncoder().encode(text));
}

const MARK = 3;

/** See the module description. */
export const CANARY: FuzzTarget = {
  name: "canary",
  seeds: [
    joinedBytes([record(1, "hello"), record(2, "world")]),
    joinedBytes([record(1, ""), record(MARK, "mark")]),
  ],
  dictionary: [],

  split(input) {
    const records: Uint8Array[] = [];
    for (let at = 0; at < input.length;) {
      const end = at + 2 + (input[at + 1] ?? 0);
      records.push(input.subarray(at, end));
      at = end;
    }
    return records;
  },

  repair(record) {
    if (record.length < 2) return record;
    const repaired = record.slice(0, 257);
    repaired[1] = repaired.length - 2;
    return repaired;
  },

  run(input) {
    const seen: string[] = [];
    for (let at = 0; at + 1 < input.length;) {
      const [type, length] = [input[at]!, input[at + 1]!];
      // The bug: only one type of record forgets to look at what is there.
      if (type === MARK && at + 2 + length > input.length) {
        throw new RangeError("The canary has read behind its input");
      }
      seen.push(type <= MARK ? `${type}` : "other");
      at += 2 + length;
    }
    return seen.slice(0, 4).join();
  },
};
