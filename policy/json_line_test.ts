import { assertEquals } from "@std/assert";
import { forAll } from "../tests/support/memory/prng.ts";
import { JsonLine } from "./json_line.ts";

const decoded = (line: Uint8Array) => new TextDecoder().decode(line);

/** What is written otherwise, from different places of Unicode. */
const ODD = ['"', "\\", "\u0000", "\n", "\u007f", "é", "\u2028", "𝄞", "\ud800"];

Deno.test("texts are as JSON has them, wherever something odd stands in them", () => {
  const line = new JsonLine();
  const plain = Array.from(
    { length: 0x7f - 0x20 },
    (_, at) => String.fromCharCode(0x20 + at),
  ).join("");
  const texts = [
    "",
    plain,
    ...ODD.flatMap((odd) => [odd, `a${odd}`, `${odd}b`]),
  ];
  for (const text of texts) {
    const bytes = line.text(text).finish();
    const wanted = new TextEncoder().encode(`${JSON.stringify(text)}\n`);
    assertEquals(bytes, wanted, JSON.stringify(text));
  }
});

Deno.test("numbers have all their digits", async () => {
  const line = new JsonLine();
  const edges = [
    0,
    9,
    10,
    99,
    100,
    999_999_999,
    1e9,
    2 ** 31,
    2 ** 32,
    2 ** 53,
  ];
  for (const number of edges) {
    assertEquals(decoded(line.number(number).finish()), `${number}\n`);
  }
  await forAll(200, (prng) => {
    const number = prng.below(10 ** (1 + prng.below(9)));
    assertEquals(decoded(line.number(number).finish()), `${number}\n`);
    const three = number % 1000;
    const wanted = `${String(three).padStart(3, "0")}\n`;
    assertEquals(decoded(line.digits(three, 3).finish()), wanted);
    return Promise.resolve();
  });
});

Deno.test("a line is whole however long it gets, and the next one begins anew", () => {
  const line = new JsonLine();
  const long = "x".repeat(5_000);
  const odd = "é".repeat(5_000);
  line.raw("[").text(long).raw(",").text(odd).raw(",").number(12).raw("]");
  const bytes = line.finish();
  assertEquals(JSON.parse(decoded(bytes)), [long, odd, 12]);
  assertEquals(decoded(line.raw("{}").finish()), "{}\n");
});
