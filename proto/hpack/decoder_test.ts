import { assert, assertEquals, assertThrows } from "@std/assert";
import { forAll, type Prng } from "../../tests/support/memory/prng.ts";
import {
  NaiveHpackDecoder,
  NaiveHpackError,
} from "../../tests/support/watch/naive_hpack.ts";
import {
  HEADER_LIST_HARD_FACTOR,
  type HeaderBlock,
  HpackDecoder,
} from "./decoder.ts";
import { type HeaderField, HpackError } from "./header_field.ts";
import { INTEGER_BYTES_MAX, writeInteger } from "./primitives.ts";

function hex(text: string): Uint8Array {
  return Uint8Array.fromHex(text.replaceAll(" ", ""));
}

function fieldsOf(block: HeaderBlock): readonly HeaderField[] {
  assert(!block.tooLarge);
  return block.fields;
}

function integer(value: number, prefixBits: number, flags: number): number[] {
  const into = new Uint8Array(INTEGER_BYTES_MAX);
  return [...into.subarray(0, writeInteger(into, 0, prefixBits, flags, value))];
}

function plain(text: string): number[] {
  const bytes = [...text].map((letter) => letter.charCodeAt(0));
  return [...integer(bytes.length, 7, 0), ...bytes];
}

function sizeUpdate(size: number): number[] {
  return integer(size, 5, 0x20);
}

function inserted(name: string, value: string): number[] {
  return [0x40, ...plain(name), ...plain(value)];
}

function notInserted(name: string, value: string): number[] {
  return [0x00, ...plain(name), ...plain(value)];
}

function block(...parts: readonly (readonly number[])[]): Uint8Array {
  return Uint8Array.from(parts.flat());
}

/** Blocks of a fresh decoder, and where it says what is wrong. */
const REFUSED: readonly [name: string, says: string, ...blocks: string[]][] = [
  ["index 0", "§6.1", "80"],
  [
    "an index behind the table, as field and as name",
    "the index is 62, wanted 1-61",
    ...["be", "7e 01 61", "0f 2f 01 61", "1f 2f 01 61"],
  ],
  ["a string longer than the block", "has 0 left", "00 01 61 7f ff ff ff 01"],
  [
    "an end that is not behind a field",
    "",
    ...["00", "40 01", "40 01 61", "04", "04 02 61", "ff", "3f"],
  ],
  ["a size update behind a field", "§4.2", "82 3f 45"],
];

for (const [name, says, ...blocks] of REFUSED) {
  Deno.test(`refused: ${name}`, () => {
    for (const text of blocks) {
      const decoder = new HpackDecoder();
      assertThrows(() => decoder.decode(hex(text)), HpackError, says);
    }
  });
}

Deno.test("never-indexed is kept, not-indexed and indexed are not marked", () => {
  const decoder = new HpackDecoder();
  const fields = fieldsOf(
    decoder.decode(hex("10 01 61 01 62  00 01 61 01 62  40 01 61 01 62  be")),
  );
  assertEquals(fields.map(({ neverIndex }) => neverIndex), [
    true,
    undefined,
    undefined,
    undefined,
  ]);
});

Deno.test("size updates: up to what was announced, not a byte more", () => {
  for (const tableSizeMax of [0, 256, 4096, 65_536]) {
    const decoder = new HpackDecoder({ tableSizeMax });
    decoder.decode(block(sizeUpdate(tableSizeMax)));
    assertThrows(
      () => decoder.decode(block(sizeUpdate(tableSizeMax + 1))),
      HpackError,
      "§6.3",
    );
  }
});

Deno.test("a larger table than the default starts only with the peer's update", () => {
  const decoder = new HpackDecoder({ tableSizeMax: 10_000 });
  const large = block(inserted("a", "b".repeat(5000)));
  decoder.decode(large);
  assertEquals(decoder.tableBytes, 0);
  decoder.decode(block(sizeUpdate(10_000), [...large]));
  assertEquals(decoder.tableBytes, 5033);
});

Deno.test("a list of exactly the limit passes, one byte more is too large", () => {
  const decode = (headerListBytesMax: number) =>
    new HpackDecoder({ headerListBytesMax }).decode(
      block(notInserted("name", "value"), notInserted("name", "value")),
    );
  assertEquals(fieldsOf(decode(82)).length, 2);
  assertEquals(decode(81), { tooLarge: true, listBytes: 82 });
});

Deno.test("behind a list that is too large the table is in step", () => {
  const decoder = new HpackDecoder({ headerListBytesMax: 100 });
  const large = block(
    notInserted("name", "x".repeat(100)),
    inserted("kept", "yes"),
  );
  assertEquals(decoder.decode(large), { tooLarge: true, listBytes: 175 });
  assertEquals(fieldsOf(decoder.decode(hex("be"))), [
    { name: "kept", value: "yes" },
  ]);
});

Deno.test("an HPACK bomb ends in an error: one entry, referred to in single bytes", () => {
  const headerListBytesMax = 10_000;
  const decoder = new HpackDecoder({ headerListBytesMax });
  decoder.decode(block(inserted("a", "b".repeat(4000))));
  const times = (count: number) => new Uint8Array(count).fill(0xbe);
  const count = Math.floor(
    headerListBytesMax * HEADER_LIST_HARD_FACTOR / 4033,
  );
  assertEquals(decoder.decode(times(count)).tooLarge, true);
  assertThrows(() => decoder.decode(times(count + 1)), HpackError, "§7.4");
});

Deno.test("a string above the hard limit is refused without being decoded", () => {
  const decoder = () => new HpackDecoder({ headerListBytesMax: 10 });
  const bytes = 10 * HEADER_LIST_HARD_FACTOR;
  const withString = (length: number, flags: number) =>
    block(
      [0x00],
      plain(""),
      integer(length, 7, flags),
      new Array(length).fill(0),
    );
  assertThrows(
    () => decoder().decode(withString(bytes + 1, 0x80)),
    HpackError,
    "§7.4",
  );
});

Deno.test("random blocks decode as the naive decoder says, or not at all", async () => {
  let decoded = 0;
  await forAll(300, (prng) => {
    const decoder = new HpackDecoder({ tableSizeMax: 300 });
    const naive = new NaiveHpackDecoder(300);
    for (let step = 0; step < 10; step++) {
      const bytes = randomBlock(prng);
      const expected = attempt(() => naive.decode(bytes), NaiveHpackError);
      const actual = attempt(
        () => fieldsOf(decoder.decode(bytes)),
        HpackError,
      );
      assertEquals(actual, expected);
      if (expected === undefined) break;
      assertEquals(decoder.tableBytes, naive.tableBytes);
      decoded++;
    }
  });
  assert(decoded > 500, `Only ${decoded} blocks were valid`);
});

function attempt<T>(
  run: () => T,
  kind: new (...given: never[]) => Error,
): T | undefined {
  try {
    return run();
  } catch (error) {
    if (error instanceof kind) return undefined;
    throw error;
  }
}

/** Mostly valid: all representations, small indexes, now and then nonsense. */
function randomBlock(prng: Prng): Uint8Array {
  const parts: number[][] = [];
  if (prng.below(8) === 0) parts.push(sizeUpdate(prng.below(301)));
  const count = prng.below(8);
  for (let index = 0; index < count; index++) {
    const forms = [[7, 0x80], [6, 0x40], [4, 0x10], [4, 0x00]] as const;
    const [bits, flags] = prng.pick(forms);
    const index = (bits === 7 ? 1 : 0) + prng.below(62);
    parts.push(integer(index, bits, flags));
    if (bits === 7) continue;
    if (index === 0) parts.push(plain(letters(prng, 20)));
    parts.push(
      prng.below(2) === 0 ? plain(letters(prng, 60)) : [0x82, 0x64, 0x02],
    );
  }
  if (prng.below(20) === 0) parts.push([...prng.bytes(4)]);
  return block(...parts);
}

function letters(prng: Prng, lengthMax: number): string {
  return "abcdefgh".repeat(8).slice(0, prng.below(lengthMax));
}
