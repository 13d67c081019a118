import {
  assert,
  assertEquals,
  assertMatch,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { barsOf, compare, median, type Outcome, stand } from "./comparison.ts";
import { checkSample, SpoiledRunError } from "./generator.ts";
import {
  type Figure,
  FULL,
  less,
  type Metric,
  more,
  supports,
} from "./metric.ts";
import { METRICS } from "./metrics.ts";
import { readPlan } from "./plan.ts";
import { isGood, renderMarkdown, renderText, rowsOf } from "./report.ts";
import { sequence } from "./rounds.ts";

const SPEED = more("gbps", "speed", "Gbit/s", { bars: { K: 1.8, F: 1.1 } });
const METRIC: Metric = {
  title: "bulk",
  figures: [
    SPEED,
    less("cpu", "CPU", "s/GB"),
    less("rss", "memory", "MB", { limit: 200 }),
  ],
};
const OURS = { gbps: 4, cpu: 2, rss: 150 };

/** Ours, then Konnectivity, frp and the target itself. */
function rows(ours: Outcome, ...theirs: readonly Outcome[]) {
  const pairs = new Map(
    theirs.map((outcome, place) => [place, [{ ours, theirs: outcome }]]),
  );
  const peers = ["konnectivity", "frp", "direct"] as const;
  return rowsOf("down1", METRIC, { alone: [ours], pairs }, "ours", peers);
}

function ratioOf(
  figure: Figure,
  pairs: readonly (readonly [number, number])[],
) {
  const outcomes = pairs.map(([ours, theirs]) => ({
    ours: { [figure.key]: ours },
    theirs: { [figure.key]: theirs },
  }));
  const result = compare(figure, outcomes, "ours", "konnectivity");
  assert("ratio" in result);
  return result;
}

Deno.test("a ratio is the median of ratios, and less may be better", () => {
  assertEquals([median([3, 1, 2]), median([4, 1, 2, 3])], [2, 2.5]);
  const { ratio, lowest, highest } = ratioOf(SPEED, [[1, 1], [8, 4], [3, 2]]);
  assertEquals([ratio, lowest, highest], [1.5, 1, 2]);
  const p50 = (bar: number) => less("p50us", "p50", "µs", { bars: { K: bar } });
  assertEquals(ratioOf(p50(1.3), [[12, 10]]).bar, "≤1.3x");
  assertEquals(ratioOf(p50(1.3), [[12, 10]]).isReached, true);
  assertEquals(ratioOf(p50(1.1), [[12, 10]]).isReached, false);
});

Deno.test("bars bind ours, one's own end has to be no worse, others nothing", () => {
  assertEquals(barsOf(SPEED, "ours"), { K: 1.8, F: 1.1 });
  assertEquals(barsOf(SPEED, "ours-agent"), { K: 1 });
  assertEquals(barsOf(SPEED, "konnectivity"), {});
  const reached = (rss: number, a: "ours" | "konnectivity") => {
    const result = stand(METRIC.figures[2]!, [{ rss }], a);
    assert("bar" in result);
    return result.isReached;
  };
  assertEquals(reached(201, "ours"), false);
  assertEquals(reached(200, "ours"), true);
  assertEquals(reached(201, "konnectivity"), undefined);
});

Deno.test("a run with an error or a missing byte is spoiled, and gives no ratio", () => {
  const whole = { mode: "down", errs: 0, bytes: 10, wanted: 10, gbps: 2 };
  assertEquals(checkSample(whole)["gbps"], 2);
  for (
    const bad of [
      { ...whole, errs: 1 },
      { ...whole, bytes: 9 },
      { ...whole, gone: 1 },
      { gbps: 2 },
      { mode: "idle", errs: 0, n: 10, ok: 9 },
    ]
  ) assertThrows(() => checkSample(bad), SpoiledRunError);
  const spoiled = { spoiled: "an error" };
  const pairs = [{ ours: OURS, theirs: OURS }, { ours: OURS, theirs: spoiled }];
  assertEquals(compare(SPEED, pairs, "ours", "frp"), spoiled);
  assertEquals(stand(SPEED, [OURS, spoiled], "ours"), spoiled);
});

Deno.test("a figure has a row beside each peer that has it, and one for its limit", () => {
  const peer = { gbps: 2, cpu: 5, rss: 90 };
  const result = rows(OURS, peer, { gbps: 3, cpu: 3, rss: 60 }, { gbps: 30 });
  assertEquals(
    result.map(({ figure, peer }) => `${figure} ${peer ?? "alone"}`),
    [
      ...["speed konnectivity", "speed frp", "speed direct"],
      ...["CPU konnectivity", "CPU frp"],
      ...["memory konnectivity", "memory frp", "memory alone"],
    ],
  );
  assert(isGood(result));
  assert(!isGood(rows({ ...OURS, gbps: 3 }, peer)));
  assert(!isGood(rows({ ...OURS, rss: 201 }, peer)));
  assert(!isGood(rows(OURS, { spoiled: "an error" })));
  assert(!isGood(rows(OURS, { cpu: 5, rss: 90 })));
});

Deno.test("text and table show ratio, spread, bar and assessment", () => {
  const result = rows(OURS, { gbps: 2, cpu: 5, rss: 90 }, {
    spoiled: "a |\nb",
  });
  const text = renderText(result);
  assertStringIncludes(text, "down1: bulk");
  assertMatch(text, /2x \[2–2\] +≥1.8x reached/);
  const table = renderMarkdown(result, "ours beside others");
  assertStringIncludes(
    table,
    "| bulk | speed Gbit/s | 4 | konnectivity | 2 | 2x [2–2] | ≥1.8x reached |",
  );
  assertStringIncludes(table, "| no ratio: a / b |");
});

Deno.test("every peer runs next to a run of A", () => {
  for (const round of [0, 1]) {
    for (let peers = 0; peers <= 6; peers++) {
      const places = Array.from({ length: peers }, (_, place) => place);
      const groups = sequence(places, round);
      for (const place of places) {
        const group = groups.find((each) => each.includes(place))!;
        const distance = group.indexOf(place) - group.indexOf("A");
        assertEquals(Math.abs(distance), 1);
      }
    }
  }
  assertEquals(sequence([0, 1], 0), [[0, "A", 1]]);
  assertEquals(sequence([0, 1], 1), [[1, "A", 0]]);
  assertEquals(sequence([], 0), [["A"]]);
});

Deno.test("every metric has one way of running, figures and ours among its contenders", () => {
  for (const [name, metric] of Object.entries(METRICS)) {
    const ways = [metric.load, metric.run].filter((way) => way !== undefined);
    assertEquals(ways.length, 1, name);
    assert(metric.figures.length > 0, name);
    assert(supports(metric, "ours"), name);
  }
  const who = (name: string) =>
    (["konnectivity", "frp", "direct"] as const)
      .filter((contender) => supports(METRICS[name]!, contender));
  assertEquals(who("conn"), ["konnectivity", "frp", "direct"]);
  assertEquals(who("conn-grpc"), ["konnectivity"]);
  assertEquals(who("stall-grpc-client-8"), []);
  // Memory is waited for only where it is assessed.
  for (
    const [name, wait] of [["ours", "60s"], ["konnectivity", "0s"]] as const
  ) {
    assert(METRICS["idle"]!.load!(FULL, name).includes(`-settle=${wait}`));
  }
});

Deno.test("a plan says what is measured beside whom, or what is wrong", () => {
  const known: Readonly<Record<string, Metric>> = {
    quick: { title: "", figures: [], isQuick: true },
    slow: { title: "", figures: [] },
    rare: { title: "", figures: [], isOnRequest: true },
  };
  const plan = (...words: readonly string[]) => {
    const result = readPlan(words, known);
    assert(typeof result !== "string", String(result));
    return result;
  };
  const { metrics, a, peers, rounds } = plan();
  assertEquals(metrics, ["quick", "slow"]);
  assertEquals([a, peers, rounds], ["ours", ["konnectivity"], 5]);
  assertEquals(plan("--quick").metrics, ["quick"]);
  assertEquals(plan("--quick", "rare", "slow").metrics, ["rare", "slow"]);
  assertEquals(plan("--a=konnectivity").a, "konnectivity");
  assertEquals(plan("--b", "frp").peers, ["frp"]);
  assertEquals(plan("--peers=direct,ours").peers, ["direct", "ours"]);
  for (
    const [words, reason] of [
      [["fast"], /unknown metric 'fast': quick slow rare/],
      [["--peers=frp,bore"], /unknown contender 'bore': ours .*nginx/],
      [["--rounds=0"], /1 or more/],
      [["--peer=frp"], /unknown flag --peer=frp/],
      [["--b=frp", "--peers=frp"], /one of them/],
    ] as const
  ) {
    const result = readPlan(words, known);
    assert(typeof result === "string");
    assertMatch(result, reason);
  }
});
