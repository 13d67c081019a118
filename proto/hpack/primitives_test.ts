import { assertEquals, assertThrows } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import { HpackError } from "./header_field.ts";
import {
  type Cursor,
  INTEGER_BYTES_MAX,
  INTEGER_CONTINUATION_BYTES_MAX,
  INTEGER_MAX,
  readInteger,
  writeInteger,
} from "./primitives.ts";

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
