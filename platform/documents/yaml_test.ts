import { assertEquals, assertThrows } from "@std/assert";
import type { DocumentPath } from "./field_error.ts";
import { parse, positionsIn } from "./yaml.ts";

const lineOf = (text: string, place: DocumentPath) =>
  positionsIn(text)(place).line;

const YAML = `%YAML 1.2
---
# services: nothing yet
services:
- name: web   # the first
  ports:
  - {name: http,
     port: 80}
  - &metrics
    name: metrics
    port: 9100
  note: |
    name: not this one
  "it's": 'it''s: "so'

- name: >-
    db
  'a ''quoted'' key': [1, "], {", [2,
    {deep: x}]]
  text: "of
    several: lines"
  ports: *metrics
-
  name: idle
last: !!map
  value: 1
`;

// deno-fmt-ignore: the columns are the point.
const IN_YAML: readonly (readonly [place: DocumentPath, line: number])[] = [
  [[],                                       4],
  [["services"],                             4],
  [["services", 0],                          5],
  [["services", 0, "name"],                  5],
  [["services", 0, "ports"],                 6],
  [["services", 0, "ports", 0, "port"],      8],
  [["services", 0, "ports", 1, "name"],     10],
  [["services", 0, "ports", 1, "port"],     11],
  [["services", 0, "note"],                 12],
  [["services", 0, "it's"],                 14],
  [["services", 1, "name"],                 16],
  [["services", 1, "a 'quoted' key", 2],    18],
  [["services", 1, "a 'quoted' key", 2, 1, "deep"], 19],
  [["services", 1, "text"],                 20],
  [["services", 2, "name"],                 24],
  [["last", "value"],                       26],
  // What is missing, or elsewhere: the line of what it is in.
  [["services", 0, "ports", 0, "protocol"],  7],
  [["services", 1, "several"],              16],
  [["services", 1, "ports", "name"],        22],
  [["services", 7],                          4],
  [["none", "deeper"],                       4],
];

for (const [place, line] of IN_YAML) {
  Deno.test(`line of ${JSON.stringify(place)}`, () => {
    assertEquals(lineOf(YAML, place), line);
  });
}

Deno.test("lines of JSON, in one line and in many", () => {
  const value = { a: [{ "b,]": 'x"}' }, [1, { c: "\\" }]], "": { d: null } };
  const text = JSON.stringify(value, undefined, 1);
  for (
    const [place, line] of [
      [["a", 0], 3],
      [["a", 0, "b,]"], 4],
      [["a", 1, 1, "c"], 9],
      [["", "d"], 14],
      [["", "e"], 13],
    ] as const
  ) {
    assertEquals(lineOf(text, place), line, JSON.stringify(place));
    assertEquals(lineOf(JSON.stringify(value), place), 1);
  }
});

Deno.test("however little a text says, there is a line", () => {
  for (const text of ["", "\n\n", "a:", "- ", "? a", "- - -", "[,]"]) {
    for (const place of [[], ["a"], ["a", "b"], [0], [0, 0], ["a", "b", 1]]) {
      const line = lineOf(text, place);
      const lines = text.split("\n").length;
      assertEquals(line >= 1 && line <= lines, true, JSON.stringify(text));
    }
  }
  const deep = `{"a": ${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
  assertEquals(lineOf(deep, ["a", "b"]), 1);
});

Deno.test("items and keys that say nothing shift no other", () => {
  const text = "a: [{x, y: 1}, ~, {z: 2}]\nb:\n-\n- ~\n-\n- c:\n  d: 5\n";
  assertEquals(parse(text), {
    a: [{ x: null, y: 1 }, null, { z: 2 }],
    b: [null, null, null, { c: null, d: 5 }],
  });
  const at = positionsIn(text);
  assertEquals(at(["a", 0, "y"]), { line: 1, column: 9 });
  assertEquals(at(["a", 2, "z"]), { line: 1, column: 20 });
  assertEquals(at(["b", 3, "d"]), { line: 7, column: 3 });
});

Deno.test("what is no YAML is refused where it stops", () => {
  for (
    const [text, problem] of [
      ["a: b: c", "bad indentation of a mapping entry at line 1, column 5"],
      ["a: 1\na: 2", "duplicated mapping key at line 2, column 1"],
    ] as const
  ) assertThrows(() => parse(text), SyntaxError, problem);
});
