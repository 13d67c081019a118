import { assert, assertEquals, assertThrows } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import { DynamicTable, fieldBytes } from "./dynamic_table.ts";
import { type HeaderField, HpackError, ListMemo } from "./header_field.ts";
import { FieldIndex } from "./field_index.ts";
import { COOKIE_BYTES_INDEXED_MIN, isSecret } from "./indexing_rule.ts";
import { naiveHuffmanDecode } from "../../tests/support/watch/naive_hpack.ts";
import {
  binaryString,
  type Cursor,
  INTEGER_BYTES_MAX,
  INTEGER_CONTINUATION_BYTES_MAX,
  INTEGER_MAX,
  readInteger,
  writeInteger,
} from "./primitives.ts";
import {
  ACCEPTS,
  CODE_BITS,
  decodedBytesMax,
  decodeHuffman,
  encodeHuffman,
  HUFFMAN_CODES,
  huffmanBytes,
} from "./huffman.ts";

function entries(table: DynamicTable): HeaderField[] {
  return Array.from({ length: table.length }, (_, age) => table.get(age)!);
}

Deno.test("an entry costs its strings and 32 bytes", () => {
  assertEquals(fieldBytes({ name: "custom-key", value: "custom-value" }), 54);
});

Deno.test("it behaves as an array with the newest entry first", async () => {
  await forAll(100, (prng) => {
    const table = new DynamicTable(500);
    let model: HeaderField[] = [];
    let limit = 500;
    for (let step = 0; step < 100; step++) {
      if (prng.below(10) === 0) {
        limit = prng.below(3000);
        table.resize(limit);
      } else {
        const field = { name: `${step}`, value: "v".repeat(prng.below(80)) };
        table.insert(field);
        model = [field, ...model];
      }
      while (sum(model) > limit) model.pop();
      assertEquals(entries(table), model);
      assertEquals(table.sizeBytes, sum(model));
    }
  });

  function sum(fields: readonly HeaderField[]): number {
    return fields.reduce((bytes, field) => bytes + fieldBytes(field), 0);
  }
});

const list = (value: string): readonly HeaderField[] =>
  Object.freeze([{ name: "x", value }]);

Deno.test("a frozen list is remembered as the object that it is", () => {
  const memo = new ListMemo<number>();
  const one = list("1");
  memo.set(one, 1);
  assertEquals(memo.get(one), 1);
  assertEquals(memo.get(list("1")), undefined);
  memo.clear();
  assertEquals(memo.get(one), undefined);
});

Deno.test("a list that may change is not remembered", () => {
  const memo = new ListMemo<number>();
  const open = [{ name: "x", value: "1" }];
  memo.set(open, 1);
  assertEquals(memo.get(open), undefined);
});

Deno.test("of five lists the last four are remembered", () => {
  const memo = new ListMemo<number>();
  const lists = [0, 1, 2, 3, 4].map((number) => list(String(number)));
  lists.forEach((each, index) => memo.set(each, index));
  assertEquals(lists.map((each) => memo.get(each)), [undefined, 1, 2, 3, 4]);
});

function insert(index: FieldIndex, name: string, value: string): void {
  index.insert({ name, value }, index.record(name));
}

function find(index: FieldIndex, name: string, value: string): number {
  return index.find(index.record(name), value);
}

function findName(index: FieldIndex, name: string): number {
  return index.findName(index.record(name));
}

Deno.test("static fields and names are found, the lowest index for a name", () => {
  const index = new FieldIndex(4096);
  assertEquals(find(index, ":method", "POST"), 3);
  assertEquals(findName(index, ":method"), 2);
  assertEquals(findName(index, "www-authenticate"), 61);
  assertEquals(find(index, ":method", "PUT"), 0);
  assertEquals(findName(index, "unheard-of"), 0);
});

Deno.test("an evicted field is not found, its name only while another entry has it", () => {
  const index = new FieldIndex(70);
  insert(index, "a", "1");
  insert(index, "a", "2");
  insert(index, "b", "3");
  assertEquals(find(index, "a", "1"), 0);
  assertEquals(findName(index, "a"), 63);
  insert(index, "b", "4");
  assertEquals(findName(index, "a"), 0);
});

Deno.test("names without an entry are forgotten, however many are asked for", () => {
  const index = new FieldIndex(100);
  for (let count = 0; count < 1000; count++) {
    insert(index, `name-${count}`, "");
    findName(index, `never-inserted-${count}`);
  }
  assertEquals(index.nameCount, 2);
});

Deno.test("cookies are secrets up to the length that can be guessed", () => {
  const cookie = (length: number) =>
    isSecret("cookie", "x".repeat(length), "index");
  assertEquals(cookie(COOKIE_BYTES_INDEXED_MIN - 1), true);
  assertEquals(cookie(COOKIE_BYTES_INDEXED_MIN), false);
});

/** The codes of Appendix B for the bytes 0-255, in hexadecimal. */
const APPENDIX_B = `
  1ff8 7fffd8 fffffe2 fffffe3 fffffe4 fffffe5 fffffe6 fffffe7 fffffe8 ffffea
  3ffffffc fffffe9 fffffea 3ffffffd fffffeb fffffec fffffed fffffee fffffef
  ffffff0 ffffff1 ffffff2 3ffffffe ffffff3 ffffff4 ffffff5 ffffff6 ffffff7
  ffffff8 ffffff9 ffffffa ffffffb 14 3f8 3f9 ffa 1ff9 15 f8 7fa 3fa 3fb f9 7fb
  fa 16 17 18 0 1 2 19 1a 1b 1c 1d 1e 1f 5c fb 7ffc 20 ffb 3fc 1ffa 21 5d 5e
  5f 60 61 62 63 64 65 66 67 68 69 6a 6b 6c 6d 6e 6f 70 71 72 fc 73 fd 1ffb
  7fff0 1ffc 3ffc 22 7ffd 3 23 4 24 5 25 26 27 6 74 75 28 29 2a 7 2b 76 2c 8 9
  2d 77 78 79 7a 7b 7ffe 7fc 3ffd 1ffd ffffffc fffe6 3fffd2 fffe7 fffe8 3fffd3
  3fffd4 3fffd5 7fffd9 3fffd6 7fffda 7fffdb 7fffdc 7fffdd 7fffde ffffeb 7fffdf
  ffffec ffffed 3fffd7 7fffe0 ffffee 7fffe1 7fffe2 7fffe3 7fffe4 1fffdc 3fffd8
  7fffe5 3fffd9 7fffe6 7fffe7 ffffef 3fffda 1fffdd fffe9 3fffdb 3fffdc 7fffe8
  7fffe9 1fffde 7fffea 3fffdd 3fffde fffff0 1fffdf 3fffdf 7fffeb 7fffec 1fffe0
  1fffe1 3fffe0 1fffe2 7fffed 3fffe1 7fffee 7fffef fffea 3fffe2 3fffe3 3fffe4
  7ffff0 3fffe5 3fffe6 7ffff1 3ffffe0 3ffffe1 fffeb 7fff1 3fffe7 7ffff2 3fffe8
  1ffffec 3ffffe2 3ffffe3 3ffffe4 7ffffde 7ffffdf 3ffffe5 fffff1 1ffffed 7fff2
  1fffe3 3ffffe6 7ffffe0 7ffffe1 3ffffe7 7ffffe2 fffff2 1fffe4 1fffe5 3ffffe8
  3ffffe9 ffffffd 7ffffe3 7ffffe4 7ffffe5 fffec fffff3 fffed 1fffe6 3fffe9
  1fffe7 1fffe8 7ffff3 3fffea 3fffeb 1ffffee 1ffffef fffff4 fffff5 3ffffea
  7ffff4 3ffffeb 7ffffe6 3ffffec 3ffffed 7ffffe7 7ffffe8 7ffffe9 7ffffea
  7ffffeb ffffffe 7ffffec 7ffffed 7ffffee 7ffffef 7fffff0 3ffffee
`.trim().split(/\s+/);

function encode(text: string): Uint8Array {
  const into = new Uint8Array(huffmanBytes(text));
  assertEquals(encodeHuffman(text, into, 0), into.length);
  return into;
}

function decode(coded: Uint8Array): string {
  const into = new Uint8Array(decodedBytesMax(coded.length));
  return binaryString(into, 0, decodeHuffman(coded, 0, coded.length, into));
}

Deno.test("the computed codes are those of Appendix B", () => {
  assertEquals([...HUFFMAN_CODES].map((code) => code.toString(16)), APPENDIX_B);
});

Deno.test("the code is complete: no bit string is unused", () => {
  let sum = 2 ** -30; // EOS
  for (const bits of CODE_BITS) sum += 2 ** -bits;
  assertEquals(sum, 1);
});

Deno.test("a string may end in eight of the states, no more", () => {
  assertEquals(ACCEPTS.reduce((count, accepts) => count + accepts, 0), 8);
});

Deno.test("each byte alone, and behind each bit offset, survives", () => {
  for (let byte = 0; byte < 256; byte++) {
    const symbol = String.fromCharCode(byte);
    // "1" has five bits, so up to seven of them reach every offset.
    for (let lead = 0; lead < 8; lead++) {
      const text = "1".repeat(lead) + symbol + "a";
      assertEquals(decode(encode(text)), text);
    }
  }
});

Deno.test("random strings survive, and the naive decoder agrees", async () => {
  await forAll(200, (prng) => {
    const bytes = prng.bytes(prng.below(60));
    const text = binaryString(bytes, 0, bytes.length);
    const coded = encode(text);
    assertEquals(decode(coded), text);
    assertEquals(naiveHuffmanDecode(coded), text);
  });
});

Deno.test("random bytes decode as the naive decoder says, or not at all", async () => {
  let accepted = 0;
  await forAll(2000, (prng) => {
    const coded = prng.bytes(prng.below(6));
    const expected = naiveHuffmanDecode(coded);
    if (expected === undefined) {
      assertThrows(() => decode(coded), HpackError);
    } else {
      accepted++;
      assertEquals(decode(coded), expected);
    }
  });
  assert(accepted > 0);
});

Deno.test("padding longer than seven bits is an error", () => {
  for (
    const hex of ["ff", "1fff", "1fffff", "1fffffff", "ff9fffffff"]
  ) {
    assertThrows(() => decode(Uint8Array.fromHex(hex)), HpackError, "padding");
  }
});

Deno.test("EOS is an error at the end, at the start and in the middle", () => {
  // The last: "a" (5 bits), EOS (30 bits), "a" (5 bits).
  for (const hex of ["ffffffff", "fffffffc", "1fffffffe3", "fffffffc1f"]) {
    assertThrows(() => decode(Uint8Array.fromHex(hex)), HpackError, "EOS");
  }
});

function read(bytes: readonly number[], prefixBits: number): number {
  const cursor: Cursor = { block: Uint8Array.from(bytes), offset: 0 };
  const value = readInteger(cursor, prefixBits);
  assertEquals(cursor.offset, bytes.length);
  return value;
}

function write(value: number, prefixBits: number, flags = 0): number[] {
  const into = new Uint8Array(INTEGER_BYTES_MAX + 1);
  const end = writeInteger(into, 1, prefixBits, flags, value);
  assertEquals(into[0], 0);
  return [...into.subarray(1, end)];
}

Deno.test("the examples of Appendix C.1 read and write", () => {
  const examples: [number, number, number[]][] = [
    [10, 5, [0b01010]], // C.1.1
    [1337, 5, [31, 154, 10]], // C.1.2
    [42, 8, [42]], // C.1.3
  ];
  for (const [value, prefixBits, bytes] of examples) {
    assertEquals(write(value, prefixBits), bytes);
    assertEquals(read(bytes, prefixBits), value);
  }
});

Deno.test("flags above the prefix are written and not read", () => {
  assertEquals(write(3, 5, 0x20), [0x23]);
  assertEquals(read([0xe3], 5), 3);
});

Deno.test("integers survive with every prefix, around every edge", async () => {
  const edges = [0, 1, 14, 15, 30, 31, 126, 127, 128, 254, 255, 256, 16_511];
  for (const value of [...edges, 2 ** 28, 2 ** 31, INTEGER_MAX]) {
    for (let bits = 1; bits <= 8; bits++) {
      assertEquals(read(write(value, bits), bits), value);
    }
  }
  await forAll(200, (prng) => {
    const bits = 1 + prng.below(8);
    const value = prng.below(2 ** prng.below(33));
    assertEquals(read(write(value, bits), bits), value);
  });
});

Deno.test("every strict prefix of an integer is truncated", () => {
  const bytes = write(INTEGER_MAX, 7);
  for (let length = 0; length < bytes.length; length++) {
    const cursor = {
      block: Uint8Array.from(bytes.slice(0, length)),
      offset: 0,
    };
    assertThrows(() => readInteger(cursor, 7), HpackError, "ends inside");
  }
});

Deno.test("an integer above INTEGER_MAX is refused", () => {
  assertEquals(read([0x7f, 0x80, 0xff, 0xff, 0xff, 0x0f], 7), INTEGER_MAX);
  assertThrows(
    () => read([0x7f, 0x81, 0xff, 0xff, 0xff, 0x0f], 7),
    HpackError,
    "greater than",
  );
});

Deno.test("an integer with more continuation bytes than allowed is refused", () => {
  const padded = (count: number) => [
    0x7f,
    ...new Array(count - 1).fill(0x80),
    0x00,
  ];
  assertEquals(read(padded(INTEGER_CONTINUATION_BYTES_MAX), 7), 127);
  assertThrows(
    () => read(padded(INTEGER_CONTINUATION_BYTES_MAX + 1), 7),
    HpackError,
    "longer than",
  );
});
