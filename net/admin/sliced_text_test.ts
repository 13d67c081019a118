import { assert, assertEquals } from "@std/assert";
import { setImmediate } from "node:timers";
import { jsonPieces, slicedText, TEXT_SLICE_MS } from "./sliced_text.ts";
import { soon } from "../../tests/support/watch/event_loop.ts";

Deno.test("a long text is made in slices, between which others have their turn", async () => {
  // Each piece takes a third of a slice, by the clock that is asked.
  let nowMs = 0;
  let made = 0;
  const seen: number[] = [];
  function* pieces() {
    for (; made < 300; made++) {
      nowMs += TEXT_SLICE_MS / 3;
      yield `piece ${made}\n`;
    }
  }
  let isOver = false;
  const other = () => {
    seen.push(made);
    if (!isOver) setImmediate(other);
  };
  setImmediate(other);
  const text = await new Response(slicedText(pieces(), () => nowMs)).text();
  isOver = true;
  assertEquals(text.split("\n").length, 301);
  const steps = seen.map((at, index) => at - (seen[index - 1] ?? 0));
  assert(seen.length > 50, `others had ${seen.length} turns`);
  assert(Math.max(...steps) <= 10, `${steps}`);
});

Deno.test("nothing is made that nobody takes", async () => {
  let made = 0;
  function* pieces() {
    for (;;) yield `${made++} `.padEnd(1_000);
  }
  const reader = slicedText(pieces()).getReader();
  await reader.read();
  const before = made;
  assertEquals(await soon(() => made !== before), false);
  await reader.cancel();
});

Deno.test("JSON in pieces is the JSON of the whole", () => {
  function* items() {
    yield { a: 1 };
    yield undefined;
    yield "x";
  }
  const values: readonly (readonly [unknown, unknown])[] = [
    [{ a: [1, { b: [2] }], c: "d", e: undefined, f: [] }, undefined],
    [[], undefined],
    [{}, undefined],
    [null, undefined],
    [7, undefined],
    ["x", undefined],
    [[1, [2]], undefined],
    [{ when: new Date(0) }, undefined],
    [{ list: items() }, { list: [{ a: 1 }, null, "x"] }],
  ];
  for (const [value, plain = value] of values) {
    const wanted = `${JSON.stringify(plain)}\n`;
    assertEquals([...jsonPieces(value)].join(""), wanted);
  }
});

Deno.test("no terminal obeys a name in JSON, which stays the same value", () => {
  const hostile = "a\u001b[2J\u009b31m\u007f\u202eb\u2028\u200b\u{e0001}é\n😀";
  const value = { [hostile]: [hostile, { [hostile]: hostile }], b: hostile };
  const text = [...jsonPieces(value)].join("");
  assertEquals(JSON.parse(text), value);
  assertEquals(/[\p{Cc}\p{Cf}\p{Zl}]/u.test(text.trimEnd()), false);
});
