import { assertEquals } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import {
  formatBytes,
  formatGoDuration,
  parseBytes,
  parseGoBool,
  parseGoDuration,
} from "./go_values.ts";

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

Deno.test("parseGoBool() reads Go's spellings and no others", () => {
  for (const text of ["1", "t", "T", "true", "TRUE", "True"]) {
    assertEquals(parseGoBool(text), true, text);
  }
  for (const text of ["0", "f", "F", "false", "FALSE", "False"]) {
    assertEquals(parseGoBool(text), false, text);
  }
  for (const text of ["yes", "no", "tRUE", "2", " true"]) {
    assertEquals(parseGoBool(text), undefined, text);
  }
});

Deno.test("parseBytes() reads plain numbers and binary units", () => {
  assertEquals(parseBytes("4194304"), 4_194_304);
  assertEquals(parseBytes("4MiB"), 4_194_304);
  assertEquals(parseBytes("4MB"), undefined);
  assertEquals(parseBytes("-1"), undefined);
  assertEquals(formatBytes(16 * 1024 * 1024), "16MiB");
  assertEquals(formatBytes(1000), "1000");
});
