import { assert, assertEquals, assertThrows } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import { naiveHuffmanDecode } from "../../tests/support/watch/naive_hpack.ts";
import { binaryString } from "./primitives.ts";
import { HpackError } from "./header_field.ts";
import {
  ACCEPTS,
  CODE_BITS,
  decodedBytesMax,
  decodeHuffman,
  encodeHuffman,
  HUFFMAN_CODES,
  huffmanBytes,
} from "./huffman.ts";

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

Deno.test("padding that is not all ones is an error", () => {
  assertEquals(decode(Uint8Array.of(0b00011_111)), "a");
  for (let padding = 0; padding < 7; padding++) {
    assertThrows(
      () => decode(Uint8Array.of(0b00011_000 | padding)),
      HpackError,
      "padding",
    );
  }
});

Deno.test("EOS is an error at the end, at the start and in the middle", () => {
  // The last: "a" (5 bits), EOS (30 bits), "a" (5 bits).
  for (const hex of ["ffffffff", "fffffffc", "1fffffffe3", "fffffffc1f"]) {
    assertThrows(() => decode(Uint8Array.fromHex(hex)), HpackError, "EOS");
  }
});

Deno.test("the bound for the decoded length is reached and never passed", () => {
  const text = "0".repeat(1000);
  assertEquals(decodedBytesMax(encode(text).length), text.length);
});
