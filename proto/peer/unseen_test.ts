import { assertEquals } from "@std/assert";
import { hasUnseen, showUnseen } from "./quoted.ts";

const HIDES: readonly string[] = [
  ..."\u0000\u001b\u007f\u009b\u2028\u2029", // orders and breaks
  ..."\u061c\u200e\u200f\u202a\u202e\u2066\u2069", // directions
  ..."\u00ad\u034f\u180e\u200b\u200c\u200d\u2060\ufeff\ufe0f", // no shape
  ..."\u115f\u1160\u17b4\u3164\uffa0\u2800", // blank
  ..."\u{e0001}\u{e0041}\u{e0100}", // tags
  "\ud800",
];

Deno.test("what nobody sees is found and shown, wherever it stands", () => {
  for (const one of HIDES) {
    const code = one.codePointAt(0)!.toString(16);
    assertEquals(hasUnseen(`a${one}b`), true, code);
    assertEquals(showUnseen(`a${one}${one}`, () => "?"), "a??", code);
  }
});

Deno.test("letters of any language are seen", () => {
  const text = "größer – 東京 🚇 שלום ناقل a b";
  assertEquals(hasUnseen(text), false);
  assertEquals(showUnseen(text, () => "?"), text);
});
