import { assert, assertEquals } from "@std/assert";
import { columnsOf, cutToColumns, inColumns, wrapped } from "./columns.ts";

Deno.test("wide characters take two columns and combining marks none", () => {
  assertEquals(columnsOf("edge-7"), 6);
  assertEquals(columnsOf("節点"), 4);
  assertEquals(columnsOf("ｅdge"), 5);
  assertEquals(columnsOf("🚀"), 2);
  assertEquals(columnsOf("cafe\u0301"), 4);
  assertEquals(columnsOf("zürich"), 6);
  assertEquals(columnsOf("…"), 1);
});

Deno.test("cutToColumns() shows that it cut, and never takes more", () => {
  assertEquals(cutToColumns("edge-7", 6), "edge-7");
  assertEquals(cutToColumns("edge-17", 6), "edge-…");
  assertEquals(cutToColumns("節点節点", 6), "節点…");
  assertEquals(cutToColumns("節点節点", 7), "節点節…");
  assertEquals(cutToColumns("edge", 1), "…");
  assertEquals(cutToColumns("edge", 0), "");
  for (
    const text of ["節点の名前", "a🚀b🚀c🚀", "e\u0301e\u0301e\u0301e\u0301"]
  ) {
    for (let width = 0; width < 12; width++) {
      assert(columnsOf(cutToColumns(text, width)) <= width, `${text} ${width}`);
      assertEquals(columnsOf(inColumns(text, width)), width);
    }
  }
});

Deno.test("a mark stays with its character, and piles of them go", () => {
  assertEquals(cutToColumns("cafe\u0301s and more", 6), "cafe\u0301s…");
  const pile = "a" + "\u0301".repeat(500);
  assertEquals(cutToColumns(pile, 10), "a" + "\u0301".repeat(3));
  assertEquals(wrapped(pile, 10), ["a" + "\u0301".repeat(3)]);
});

Deno.test("inColumns() fills up on either side", () => {
  assertEquals(inColumns("ab", 4), "ab  ");
  assertEquals(inColumns("ab", 4, "right"), "  ab");
  assertEquals(inColumns("abcdef", 4, "right"), "abc…");
});

Deno.test("wrapped() breaks between words, and words only when it must", () => {
  assertEquals(wrapped("one two three", 7), ["one two", "three"]);
  assertEquals(wrapped("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
  assertEquals(wrapped("節点節点", 4), ["節点", "節点"]);
  assertEquals(wrapped("", 4), [""]);
  assertEquals(wrapped("節", 1), ["節"]);
});
