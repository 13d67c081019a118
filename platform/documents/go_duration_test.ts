import { assertEquals } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import { formatGoDuration, parseGoDuration } from "./go_duration.ts";

// deno-fmt-ignore: the columns are the point.
const DURATIONS: readonly [text: string, ms: number | undefined][] = [
  ["1h0m0s", 3_600_000], ["1.5s", 1500], ["100ms", 100],  ["0", 0],
  ["0s", 0],             ["+5s", 5000],  ["-5s", -5000],  [".5m", 30_000],
  ["1us", 0.001],        ["1µs", 0.001], ["1000ns", 0.001], ["2h45m", 9_900_000],
  ["1.h", 3_600_000],
  ["", undefined],       ["10", undefined], ["s", undefined], ["1 s", undefined],
  ["1d", undefined],     ["1s1", undefined], ["--1s", undefined], [".s", undefined],
];

for (const [text, ms] of DURATIONS) {
  Deno.test(`parseGoDuration() reads ${JSON.stringify(text)} as Go does`, () => {
    assertEquals(parseGoDuration(text), ms);
  });
}

Deno.test("formatGoDuration() writes what parseGoDuration() reads", async () => {
  assertEquals(formatGoDuration(3_600_000), "1h0m0s");
  assertEquals(formatGoDuration(90_500), "1m30.5s");
  assertEquals(formatGoDuration(100), "100ms");
  assertEquals(formatGoDuration(0), "0s");
  await forAll(200, (prng) => {
    const ms = prng.below(100_000_000);
    assertEquals(parseGoDuration(formatGoDuration(ms)), ms);
  });
});
