import { assert, assertEquals, assertThrows } from "@std/assert";
import { barsOf, compare, median, type Pair, stand } from "./comparison.ts";
import { checkSample, SpoiledRunError } from "./generator.ts";
import type { Figure } from "./metric.ts";

const SPEED: Figure = {
  key: "gbps",
  title: "speed",
  unit: "Gbit/s",
  better: "more",
  bars: { K: 1.3, F: 1.6 },
  moonshots: { K: 2 },
};

function besideKonnectivity(figure: Figure, pairs: readonly Pair[]) {
  return compare(figure, pairs, "ours", "konnectivity");
}

Deno.test("median() takes the middle, or the mean of the middle two", () => {
  assertEquals(median([3, 1, 2]), 2);
  assertEquals(median([4, 1, 2, 3]), 2.5);
});

Deno.test("compare() takes the median of ratios, not the ratio of medians", () => {
  const pairs = [[1, 1], [8, 4], [3, 2]].map(([ours, theirs]) => ({
    ours: { gbps: ours! },
    theirs: { gbps: theirs! },
  }));
  const result = besideKonnectivity(SPEED, pairs);
  assert("ratio" in result);
  assertEquals([result.ratio, result.lowest, result.highest], [1.5, 1, 2]);
  assertEquals(result.isReached, true);
});

Deno.test("compare() knows that less may be better", () => {
  const pairs = [{ ours: { p50us: 12 }, theirs: { p50us: 10 } }];
  const figure = { ...SPEED, key: "p50us", better: "less" } as const;
  const result = besideKonnectivity(figure, pairs);
  assert("ratio" in result);
  assertEquals([result.bar, result.isReached], ["≤1.3x", true]);
  const strict = besideKonnectivity({ ...figure, bars: { K: 1.1 } }, pairs);
  assert("ratio" in strict);
  assertEquals(strict.isReached, false);
});

Deno.test("compare() takes each peer's own bar and moonshot", () => {
  const pairs = [{ ours: { gbps: 3 }, theirs: { gbps: 2 } }];
  const assessments = (["konnectivity", "frp", "nginx"] as const).map(
    (peer) => {
      const result = compare(SPEED, pairs, "ours", peer);
      assert("ratio" in result);
      return [result.isReached, result.isMoonshotReached];
    },
  );
  assertEquals(assessments, [
    [true, false],
    [false, undefined],
    [undefined, undefined],
  ]);
});

Deno.test("a tunnel of which half is ours has to be no worse, others nothing", () => {
  assertEquals(barsOf(SPEED, "ours-agent"), { bars: { K: 1 }, moonshots: {} });
  assertEquals(barsOf({ ...SPEED, bars: {} }, "ours-server").bars, {});
  assertEquals(barsOf(SPEED, "konnectivity").bars, {});
});

Deno.test("stand() holds ours to a limit, and nobody else", () => {
  const figure: Figure = {
    key: "rss",
    title: "",
    unit: "MiB",
    better: "less",
    limit: 90,
  };
  const reached = (rss: number, a: "ours" | "konnectivity") => {
    const result = stand(figure, [{ rss }], a);
    assert("bar" in result);
    return result.isReached;
  };
  assertEquals(reached(91, "ours"), false);
  assertEquals(reached(90, "ours"), true);
  assertEquals(reached(91, "konnectivity"), undefined);
});

Deno.test("compare() gives no ratio when one run was spoiled", () => {
  const good = { ours: { gbps: 2 }, theirs: { gbps: 1 } };
  const spoiled = { spoiled: "an error" };
  for (
    const bad of [{ ...good, ours: spoiled }, { ...good, theirs: spoiled }]
  ) {
    assertEquals(besideKonnectivity(SPEED, [good, bad, good]), spoiled);
  }
  assertEquals(stand(SPEED, [{ gbps: 2 }, spoiled], "ours"), spoiled);
});

Deno.test("checkSample() refuses a run with an error or a missing byte", () => {
  const whole = { mode: "down", errs: 0, bytes: 10, wanted: 10, gbps: 2 };
  assertEquals(checkSample(whole)["gbps"], 2);
  for (
    const spoiled of [
      { ...whole, errs: 1 },
      { ...whole, bytes: 9 },
      { ...whole, gone: 1 },
      { gbps: 2 },
      { mode: "idle", errs: 0, n: 10, ok: 9 },
    ]
  ) {
    assertThrows(() => checkSample(spoiled), SpoiledRunError);
  }
});
