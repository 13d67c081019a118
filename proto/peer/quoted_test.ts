import { assertEquals } from "@std/assert";
import { clipped, kept, quoted } from "./quoted.ts";

Deno.test("texts of others are shown in part, and on one line", () => {
  assertEquals(clipped("x".repeat(60)), "x".repeat(60));
  assertEquals(clipped("x".repeat(61)), `${"x".repeat(60)}…`);
  assertEquals(clipped("abc", 2), "ab…");
  assertEquals(kept("abc", 2), "ab");
  assertEquals(kept("ab", 2), "ab");
  assertEquals(quoted('a "b"\n\u001b[2J'), '"a \\"b\\"\\n\\u001b[2J"');
  assertEquals(quoted("abc", 2), '"ab…"');
});
