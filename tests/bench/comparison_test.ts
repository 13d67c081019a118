import { assert, assertEquals, assertThrows } from "@std/assert";
import { compare, median } from "./comparison.ts";
import { checkSample, SpoiledRunError } from "./contender.ts";
import type { Figure } from "./metrics.ts";

const SPEED: Figure = {
  key: "gbps",
  title: "speed",
  unit: "Gbit/s",
  better: "more",
  bar: 1.3,
};

Deno.test("median() takes the middle, or the mean of the middle two", () => {
  assertEquals(median([3, 1, 2]), 2);
  assertEquals(median([4, 1, 2, 3]), 2.5);
});

Deno.test("compare() takes the median of ratios, not the ratio of medians", () => {
  const pairs = [[1, 1], [8, 4], [3, 2]].map(([ours, theirs]) => ({
    ours: { gbps: ours! },
    theirs: { gbps: theirs! },
  }));
  const result = compare(SPEED, pairs);
  assert("ratio" in result);
  assertEquals([result.ratio, result.lowest, result.highest], [1.5, 1, 2]);
  assertEquals(result.isReached, true);
});

Deno.test("compare() knows that less may be better", () => {
  const pairs = [{ ours: { p50us: 12 }, theirs: { p50us: 10 } }];
  const figure = { ...SPEED, key: "p50us", better: "less", bar: 1.1 } as const;
  const result = compare(figure, pairs);
  assert("ratio" in result);
  assertEquals(result.isReached, false);
});

Deno.test("compare() holds ours to a limit, whatever the peer has", () => {
  const pairs = [{ ours: { rss: 91 }, theirs: { rss: 400 } }];
  const figure = {
    key: "rss",
    title: "",
    unit: "MiB",
    better: "less",
  } as const;
  const over = compare({ ...figure, limit: 90 }, pairs);
  const within = compare({ ...figure, limit: 91 }, pairs);
  assert("ratio" in over && "ratio" in within);
  assertEquals([over.isReached, within.isReached], [false, true]);
});

Deno.test("compare() gives no ratio when one pair was spoiled", () => {
  const good = { ours: { gbps: 2 }, theirs: { gbps: 1 } };
  const spoiled = { spoiled: "an error" };
  assertEquals(compare(SPEED, [good, spoiled, good]), spoiled);
});

Deno.test("checkSample() refuses a run with an error or a missing octet", () => {
  const whole = { mode: "down", errs: 0, octets: 10, wanted: 10, gbps: 2 };
  assertEquals(checkSample(whole)["gbps"], 2);
  for (
    const spoiled of [
      { ...whole, errs: 1 },
      { ...whole, octets: 9 },
      { gbps: 2 },
      { mode: "idle", errs: 0, n: 10, ok: 9 },
    ]
  ) {
    assertThrows(() => checkSample(spoiled), SpoiledRunError);
  }
});
