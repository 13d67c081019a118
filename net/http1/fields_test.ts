import { assert, assertEquals, assertThrows } from "@std/assert";
import { FIELD_LINES_MAX, Fields } from "./fields.ts";
import { MessageError } from "./refusal.ts";
import { patience } from "../../tests/support/watch/patience.ts";

const of = (...lines: string[]) => new Fields(lines, 400);

Deno.test("fields are found by their names in any spelling, without blanks around", () => {
  const fields = of("Host:a", "X-Y: \t b c \t", "x-y:", "x: \xa0d\xa0");
  assertEquals(fields.all("host"), ["a"]);
  assertEquals(fields.all("x-y"), ["b c", ""]);
  assertEquals(fields.all("x"), ["\xa0d\xa0"]);
  assertEquals(fields.one("y"), undefined);
  assertThrows(() => fields.one("x-y"), MessageError);
});

Deno.test("a list is its items, of all its lines", () => {
  const fields = of("Connection: close, Upgrade,,", "connection: \tX");
  assertEquals(fields.list("connection"), ["close", "upgrade", "x"]);
});

// deno-fmt-ignore: the columns are the point.
const NO_FIELDS: readonly [name: string, line: string][] = [
  ["no colon",                   "oops"],
  ["no name",                    ": x"],
  ["a blank before its colon",   "A : x"],
  ["a blank in front",           " A: x"],
  ["a tab in front",             "\tA: x"],
  ["a NUL",                      "A: b\0c"],
  ["a carriage return",          "A: b\rc"],
  ["a delete",                   "A: b\x7f"],
  ["a name beyond ASCII",        "\xe4: b"],
];

for (const [name, line] of NO_FIELDS) {
  Deno.test(`a line with ${name} is no field`, () => {
    for (const status of [400, 502] as const) {
      const lines = ["Host: a", line];
      const error = assertThrows(() => new Fields(lines, status), MessageError);
      assertEquals(error.status, status);
    }
  });
}

Deno.test("there are only so many lines", () => {
  const lines = Array(FIELD_LINES_MAX + 1).fill("a: b");
  const statusOf = (status: 400 | 502) =>
    assertThrows(() => new Fields(lines, status), MessageError).status;
  assertEquals([statusOf(400), statusOf(502)], [431, 502]);
  assert(new Fields(lines.slice(1), 400).all("a").length === FIELD_LINES_MAX);
});

Deno.test("a line of blanks stops nobody", () => {
  // To be read again for each way to part them would take seconds.
  const fields = of(`A: x${" ".repeat(60_000)}y`);
  const startMs = performance.now();
  for (let count = 0; count < 20; count++) {
    fields.all("a");
    fields.list("a");
    fields.endToEnd(() => false);
  }
  assert(performance.now() - startMs < patience(2_000));
});
