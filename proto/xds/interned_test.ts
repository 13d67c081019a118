import { assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import { Interned, ROW_MAX } from "./name_lists.ts";

const read = (bytes: Uint8Array): { text: string } => ({
  text: bytes.toHex(),
});

Deno.test("equal bytes have one value, wherever they stand", () => {
  const interned = new Interned<{ text: string }>();
  let reads = 0;
  const counted = (bytes: Uint8Array) => (reads++, read(bytes));
  const buffer = Uint8Array.of(9, 9, 9, 1, 2, 3, 4, 5, 9);
  const first = interned.valueOf(buffer.subarray(3, 8), counted);
  const found = interned.valueOf(Uint8Array.of(1, 2, 3, 4, 5), counted);
  assertStrictEquals(found, first);
  assertEquals(reads, 1);
  assertEquals(interned.size, 1);
});

Deno.test("what was read does not change with the bytes it came from", () => {
  const interned = new Interned<{ text: string }>();
  const bytes = Uint8Array.of(1, 2, 3);
  const value = interned.valueOf(bytes, read);
  bytes.fill(7);
  assertEquals(interned.valueOf(bytes, read).text, "070707");
  assertStrictEquals(interned.valueOf(Uint8Array.of(1, 2, 3), read), value);
});

Deno.test("bytes that differ anywhere have values of their own", async () => {
  await forAll(300, (prng) => {
    const interned = new Interned<{ text: string }>();
    const bytes = prng.bytes(prng.below(40));
    const value = interned.valueOf(bytes, read);
    assertEquals(value.text, bytes.toHex());
    const other = bytes.slice(0, prng.below(bytes.length + 1));
    if (other.length > 0) {
      other[prng.below(other.length)]! ^= 1 << prng.below(8);
    }
    const expected = other.toHex();
    assertEquals(interned.valueOf(other, read).text, expected);
    assertStrictEquals(interned.valueOf(bytes, read), value);
  });
});

Deno.test("what cannot be read is not known afterwards", () => {
  const interned = new Interned<{ text: string }>();
  assertThrows(
    () =>
      interned.valueOf(Uint8Array.of(1), () => {
        throw new RangeError("broken");
      }),
    RangeError,
  );
  assertEquals(interned.size, 0);
  assertEquals(interned.valueOf(Uint8Array.of(1), read).text, "01");
});

Deno.test("bytes made for one hash are not compared with without end", () => {
  const interned = new Interned<{ text: string }>();
  const held: unknown[] = [];
  for (const bytes of collisions(ROW_MAX + 3)) {
    const value = interned.valueOf(bytes, read);
    assertEquals(value.text, bytes.toHex());
    held.push(value);
  }
  assertEquals(interned.size, ROW_MAX);
});

/**
 * Different bytes of one hash: steps with a word are undone one by one, so a
 * second word can be found for any first one.
 */
function collisions(count: number): Uint8Array[] {
  const prime = 0x01000193;
  const step = (hash: number, word: number) => {
    const mixed = Math.imul(hash ^ word, prime);
    return mixed ^ mixed >>> 15;
  };
  const start = 0x811c9dc5 ^ 8;
  const wanted = step(step(start, 0), 0);
  return Array.from({ length: count }, (_, first) => {
    // The second step from there has to give `wanted`: it is one-to-one in its
    // word, and its hash is only xored with it.
    const second = step(start, first) ^ step(start, 0);
    const bytes = new Uint8Array(8);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, first);
    view.setUint32(4, second);
    assertEquals(step(step(start, first), second), wanted);
    return bytes;
  });
}
