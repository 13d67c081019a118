import { assertEquals } from "@std/assert";
import { printable } from "./printable.ts";

Deno.test("plain text of any language stays as it is", () => {
  for (const text of ["", "agent linked", "größer – 東京 🚇 שלום"]) {
    assertEquals(printable(text, 100), text);
  }
});

Deno.test("what breaks, colours or turns around a line is escaped", () => {
  assertEquals(printable("a\nb\r\tc", 100), "a\\nb\\r\\tc");
  assertEquals(printable("\x1b[2J\x7f\x9b", 100), "\\u001b[2J\\u007f\\u009b");
  const invisible = "\u200e\u200f\u202a\u202e\u2066\u2069\u2028\u2029\ufeff";
  for (const character of invisible) {
    const code = character.charCodeAt(0).toString(16);
    assertEquals(printable(`x${character}y`, 100), `x\\u${code}y`);
  }
});

Deno.test("tags that nobody sees are escaped as well", () => {
  assertEquals(
    printable("a\u{e0041}\u00ad\u2060b", 9),
    "a\\u{e0041}\\u00ad\\u2060b",
  );
});

Deno.test("an overlong text is cut, and says by how much", () => {
  assertEquals(
    printable("x".repeat(60_000), 10),
    `${"x".repeat(10)}… (59990 more characters)`,
  );
  // The cut goes through a character of two halves.
  assertEquals(printable("ab🚇", 3), "ab\\ud83d… (1 more characters)");
});
