import { assertEquals } from "@std/assert";
import { lowest, slopePerMinute } from "./growth.ts";

const samples = (...values: number[]) =>
  values.map((value, atMinutes) => ({ atMinutes, value }));

Deno.test("what stays has no slope, what grows has its own", () => {
  assertEquals(slopePerMinute(samples(7, 7, 7, 7)), 0);
  assertEquals(slopePerMinute(samples(1, 3, 5, 7)), 2);
  assertEquals(slopePerMinute(samples(9)), 0);
});

Deno.test("one sample far off does not make a slope", () => {
  assertEquals(slopePerMinute(samples(5, 5, 5, 900, 5, 5, 5)), 0);
});

Deno.test("a saw has the slope of its lowest points", () => {
  const saw = samples(1, 8, 15, 2, 9, 16, 3, 10, 17, 4);
  const least = lowest(saw, 3);
  assertEquals(least.map(({ value }) => value), [1, 2, 3]);
  assertEquals(slopePerMinute(least), 1 / 3);
});
