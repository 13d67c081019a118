/**
 * Inputs made from other inputs, first by their records, then by their bytes.
 *
 * Knows of formats only what a target says about them.
 *
 * @module
 */

import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import type { Prng } from "../support/memory/prng.ts";
import type { FuzzTarget } from "./target.ts";

/** No input grows beyond this: long ones only make the search slow. */
const INPUT_BYTES_MAX = 16 * 1024;

const STEPS_MAX = 4;

/** Values at which lengths, flags and signs change their meaning. */
const EDGE_BYTES = [0x00, 0x01, 0x05, 0x0a, 0x10, 0x20, 0x7f, 0x80, 0xff];

/** A mutation of one of `pool`; sometimes parts of a second one go into it. */
export function mutate(
  target: FuzzTarget,
  pool: readonly Uint8Array[],
  prng: Prng,
): Uint8Array {
  let input = prng.pick(pool);
  for (let left = prng.below(STEPS_MAX); left >= 0; left--) {
    input = prng.below(8) === 0
      ? mutateBytes(input, target.dictionary, prng)
      : mutateRecords(target, input, pool, prng);
  }
  return input.subarray(0, INPUT_BYTES_MAX);
}

function mutateRecords(
  target: FuzzTarget,
  input: Uint8Array,
  pool: readonly Uint8Array[],
  prng: Prng,
): Uint8Array {
  const records = target.split(input);
  const at = prng.below(records.length + 1);
  const chosen = records[at];
  switch (prng.below(chosen === undefined ? 1 : 7)) {
    case 0: {
      const others = target.split(prng.pick(pool));
      if (others.length > 0) records.splice(at, 0, prng.pick(others));
      break;
    }
    case 1:
      records.splice(at, 1);
      break;
    case 2: {
      const copies = new Array<Uint8Array>(1 + prng.below(8)).fill(chosen!);
      records.splice(at, 0, ...copies);
      break;
    }
    case 3:
      records.splice(at, 1);
      records.splice(prng.below(records.length + 1), 0, chosen!);
      break;
    default: {
      const changed = mutateBytes(chosen!, target.dictionary, prng);
      // Left broken now and then: lengths that lie are inputs too.
      records[at] = prng.below(4) === 0 ? changed : target.repair(changed);
    }
  }
  return joinedBytes(records);
}

/** Changes a few bytes, wherever they are. */
export function mutateBytes(
  input: Uint8Array,
  dictionary: readonly Uint8Array[],
  prng: Prng,
): Uint8Array {
  const at = prng.below(input.length + 1);
  const length = 1 + prng.below(Math.min(16, input.length - at + 1));
  const before = input.subarray(0, at);
  const after = input.subarray(at);
  switch (prng.below(7)) {
    case 0: {
      const flipped = input.slice();
      if (at < flipped.length) flipped[at]! ^= 1 << prng.below(8);
      return flipped;
    }
    case 1: {
      const set = input.slice();
      if (at < set.length) set[at] = prng.pick(EDGE_BYTES);
      return set;
    }
    case 2:
      return joinedBytes([before, prng.bytes(length), after]);
    case 3:
      return joinedBytes([before, after.subarray(length)]);
    case 4:
      return joinedBytes([before, after.subarray(0, length), after]);
    case 5:
      return before.slice();
    default:
      return dictionary.length === 0
        ? input
        : joinedBytes([before, prng.pick(dictionary), after]);
  }
}
