import { assertEquals } from "@std/assert";
import {
  ageText,
  counted,
  countText,
  millisText,
  rateText,
  shortCount,
  sizeText,
} from "./quantities.ts";

Deno.test("ageText() has two units at most", () => {
  const texts: [number, string][] = [
    [-5, "0s"],
    [999, "0s"],
    [59_999, "59s"],
    [60_000, "1m"],
    [192_000, "3m12s"],
    [3_600_000, "1h"],
    [7_500_000, "2h5m"],
    [86_400_000, "1d"],
    [3 * 86_400_000 + 4 * 3_600_000 + 59_000, "3d4h"],
    [400 * 86_400_000, "400d"],
  ];
  for (const [ms, text] of texts) assertEquals(ageText(ms), text);
});

Deno.test("sizes and rates have two or three digits that mean something", () => {
  const texts: [number, string][] = [
    [0, "0 B"],
    [812, "812 B"],
    [999.6, "1.0 kB"],
    [1_234, "1.2 kB"],
    [9_960, "10 kB"],
    [999_600, "1.0 MB"],
    [12_345_678, "12 MB"],
    [2.5e18, "2500 PB"],
  ];
  for (const [bytes, text] of texts) assertEquals(sizeText(bytes), text);
  assertEquals(rateText(1_234_567), "1.2 MB/s");
});

Deno.test("times and counts", () => {
  assertEquals(
    [0.42, 9.96, 12.4, 999.4, 1_300, 10_000].map(millisText),
    ["0.4 ms", "10 ms", "12 ms", "999 ms", "1.3 s", "10 s"],
  );
  assertEquals(countText(9_624), "9,624");
  assertEquals(countText(1_234_567), "1,234,567");
  assertEquals(counted(1, "node"), "1 node");
  assertEquals(counted(5_000, "node"), "5,000 nodes");
});

Deno.test("counts are short", () => {
  assertEquals(
    [0, 999, 1_000, 9_949, 12_345, 999_600, 1_500_000, 2e12].map((count) =>
      shortCount(count)
    ),
    ["0", "999", "1.0k", "9.9k", "12k", "1.0M", "1.5M", "2.0T"],
  );
});
