/**
 * The HPACK decoder against one written to be read, then our encoder on what
 * came out. An input is a series of blocks on one connection, each with its
 * length in two bytes.
 *
 * @module
 */

import { joinedBytes } from "../../../proto/bytes/byte_arrays.ts";
import { assert, assertEquals } from "@std/assert";
import { HpackDecoder } from "../../../proto/hpack/decoder.ts";
import { HpackEncoder } from "../../../proto/hpack/encoder.ts";
import {
  type HeaderField,
  HpackError,
} from "../../../proto/hpack/header_field.ts";
import {
  NaiveHpackDecoder,
  NaiveHpackError,
} from "../../support/watch/naive_hpack.ts";
import { prngOf } from "../cutting.ts";
import type { FuzzTarget } from "../target.ts";

/** Small, so that entries are evicted. */
const TABLE_SIZE_MAX = 256;

/** Large enough that no input is over it: the naive decoder has no limit. */
const LIST_BYTES_MAX = 2 ** 30;

function blocks(...hex: readonly string[]): Uint8Array {
  return joinedBytes(hex.map((digits) => {
    const block = Uint8Array.fromHex(digits);
    return Uint8Array.of(block.length >>> 8, block.length, ...block);
  }));
}

/** See the module description. */
export const HPACK: FuzzTarget = {
  name: "hpack",
  seeds: [
    // Like RFC 7541 Appendix C.4 and C.6.
    blocks(
      "828684418cf1e3c2e5f23a6ba0ab90f4ff",
      "828684be5886a8eb10649cbf",
      "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
    ),
    blocks(
      "4882640258" + "85aec3771a4b6196d07abe941054d444a8200595040b8166e082a6" +
        "2d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
      "4883640effc1c0bf",
    ),
    // Size updates, never-indexed, plain strings, a name by dynamic index.
    blocks("3f00", "20", "3fe10140016101627e0163", "1f0001610f2f0162"),
    blocks("1001610162", "0001610162", "400161016281be"),
  ],
  dictionary: [
    Uint8Array.of(0xff, 0x80, 0x80, 0x80, 0x80, 0x0f),
    Uint8Array.of(0x3f, 0xe1, 0x01),
    Uint8Array.of(0x20),
    Uint8Array.of(0xbe),
    Uint8Array.of(0x7e, 0x01, 0x61),
    Uint8Array.of(0x40, 0x01, 0x61, 0x01, 0x62),
    Uint8Array.of(0x84, 0xff, 0xff, 0xff, 0xff),
  ],

  split(input) {
    const records: Uint8Array[] = [];
    for (let at = 0; at < input.length;) {
      const end = at + 2 + ((input[at]! << 8) | (input[at + 1] ?? 0));
      records.push(input.subarray(at, end));
      at = end;
    }
    return records;
  },

  repair(record) {
    const length = record.length - 2;
    if (length < 0) return record;
    return Uint8Array.of(length >>> 8, length, ...record.subarray(2));
  },

  run(input) {
    const decoder = new HpackDecoder({
      tableSizeMax: TABLE_SIZE_MAX,
      headerListBytesMax: LIST_BYTES_MAX,
    });
    const naive = new NaiveHpackDecoder(TABLE_SIZE_MAX);
    const outcome: string[] = [];
    for (const record of HPACK.split(input)) {
      const block = record.subarray(2);
      const actual = decodeOr(decoder, block);
      assertEquals(
        typeof actual === "string" ? undefined : actual,
        naiveDecode(naive, block),
        "The decoders disagree",
      );
      if (typeof actual === "string") return [...outcome, actual].join();
      assertEquals(decoder.tableBytes, naive.tableBytes);
      assert(decoder.tableBytes <= TABLE_SIZE_MAX);
      outcome.push(`${actual.length}/${naive.table.length}`);
      assertRoundTrip(actual, input);
    }
    return outcome.join();
  },
};

function decodeOr(
  decoder: HpackDecoder,
  block: Uint8Array,
): readonly HeaderField[] | string {
  try {
    const result = decoder.decode(block);
    assert(!result.tooLarge);
    return result.fields;
  } catch (error) {
    if (error instanceof HpackError) return `§${error.section}`;
    throw error;
  }
}

function naiveDecode(
  naive: NaiveHpackDecoder,
  block: Uint8Array,
): HeaderField[] | undefined {
  try {
    return naive.decode(block);
  } catch (error) {
    if (error instanceof NaiveHpackError) return undefined;
    throw error;
  }
}

/** Twice in a row, with the tables in all sizes, what went in comes out. */
function assertRoundTrip(
  fields: readonly HeaderField[],
  input: Uint8Array,
): void {
  const prng = prngOf(input);
  const encoder = new HpackEncoder();
  const decoder = new HpackDecoder({ headerListBytesMax: LIST_BYTES_MAX });
  for (let round = 0; round < 2; round++) {
    while (prng.below(2) === 0) {
      encoder.setPeerTableSize(prng.below(300));
    }
    const block = encoder.encode(fields);
    const result = decoder.decode(block);
    assert(!result.tooLarge);
    assertEquals(result.fields.map(texts), fields.map(texts));
    // Our encoder may add the mark, for secrets, but never lose it.
    for (const [index, field] of fields.entries()) {
      assert(!field.neverIndex || result.fields[index]!.neverIndex);
    }
  }
}

function texts({ name, value }: HeaderField): string[] {
  return [name, value];
}
