import { assertEquals } from "@std/assert";
import { forAll } from "../tests/support/memory/prng.ts";
import { Wildcard } from "./wildcard.ts";

// deno-fmt-ignore: the columns are the point.
const CASES: readonly (readonly [pattern: string, text: string, fits: boolean])[] = [
  ["*",        "",           true ],
  ["*",        "anything",   true ],
  ["",         "",           true ],
  ["",         "a",          false],
  ["edge-7",   "edge-7",     true ],
  ["edge-7",   "edge-77",    false],
  ["edge-*",   "edge-",      true ],
  ["edge-*",   "edge-7",     true ],
  ["edge-*",   "bedge-7",    false],
  ["*.b.c",    "a.b.c",      true ],
  ["*.b.c",    "a.a.b.c",    true ],
  ["*.b.c",    "b.c",        false],
  ["a*a",      "a",          false],
  ["a*a",      "aa",         true ],
  ["a*b*c",    "a-b-c",      true ],
  ["a*b*c",    "acb",        false],
  ["ab*bc*cd", "abcd",       false],
  ["**",       "x",          true ],
  ["a**b",     "ab",         true ],
  ["a.c",      "abc",        false],
  ["[a-z]",    "b",          false],
];

Deno.test("a star stands for any run of characters, and nothing else does", () => {
  for (const [pattern, text, fits] of CASES) {
    assertEquals(new Wildcard(pattern).matches(text), fits, pattern + text);
  }
});

Deno.test("random patterns match what the plain definition says", async () => {
  await forAll(2_000, (random) => {
    const word = (letters: readonly string[], size: number) =>
      Array.from({ length: random.below(size) }, () => random.pick(letters))
        .join("");
    const pattern = word(["a", "b", "*"], 7);
    const text = word(["a", "b"], 9);
    assertEquals(
      new Wildcard(pattern).matches(text),
      matchesByDefinition(pattern, text),
      `${pattern} ${text}`,
    );
  });
});

Deno.test("a hostile text is gone through once", () => {
  // A backtracking matcher would need more steps than there is time for.
  const pattern = new Wildcard("*a".repeat(200) + "*b");
  assertEquals(pattern.matches("a".repeat(100_000)), false);
});

function matchesByDefinition(pattern: string, text: string): boolean {
  if (pattern === "") return text === "";
  if (pattern[0] !== "*") {
    return text[0] === pattern[0] &&
      matchesByDefinition(pattern.slice(1), text.slice(1));
  }
  return matchesByDefinition(pattern.slice(1), text) ||
    (text !== "" && matchesByDefinition(pattern, text.slice(1)));
}
