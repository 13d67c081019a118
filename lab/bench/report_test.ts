import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import type { Outcome } from "./comparison.ts";
import type { Metric } from "./metric.ts";
import { isGood, renderMarkdown, renderText, rowsOf } from "./report.ts";

const METRIC: Metric = {
  title: "bulk",
  figures: [
    {
      key: "gbps",
      title: "speed",
      unit: "Gbit/s",
      better: "more",
      bars: { K: 1.8, F: 1.1 },
      moonshots: { K: 2.4 },
    },
    { key: "cpu", title: "CPU", unit: "s/GB", better: "less" },
    { key: "rss", title: "memory", unit: "MB", better: "less", limit: 200 },
  ],
};

/** Ours, then Konnectivity, frp and the target itself. */
function rows(ours: Outcome, ...theirs: readonly Outcome[]) {
  const pairs = new Map(
    theirs.map((outcome, place) => [place, [{ ours, theirs: outcome }]]),
  );
  const peers = ["konnectivity", "frp", "direct"] as const;
  return rowsOf("down1", METRIC, { alone: [ours], pairs }, "ours", peers);
}

const OURS = { gbps: 4, cpu: 2, rss: 150 };

Deno.test("a figure has a row beside each peer that has it, and one for its limit", () => {
  const result = rows(
    OURS,
    { gbps: 2, cpu: 5, rss: 90 },
    { gbps: 3, cpu: 3, rss: 60 },
    { gbps: 30 },
  );
  assertEquals(
    result.map(({ figure, peer }) => `${figure} ${peer ?? "alone"}`),
    [
      ...["speed konnectivity", "speed frp", "speed direct"],
      ...["CPU konnectivity", "CPU frp"],
      ...["memory konnectivity", "memory frp", "memory alone"],
    ],
  );
  assert(isGood(result));
});

Deno.test("a missed bar, a missed limit and a spoiled run are no good", () => {
  const peer = { gbps: 2, cpu: 5, rss: 90 };
  assert(isGood(rows(OURS, peer)));
  assert(!isGood(rows({ ...OURS, gbps: 3 }, peer)));
  assert(!isGood(rows({ ...OURS, rss: 201 }, peer)));
  assert(!isGood(rows(OURS, { spoiled: "an error" })));
});

Deno.test("a number that a bar needs must be there", () => {
  assert(!isGood(rows(OURS, { cpu: 5, rss: 90 })));
});

Deno.test("text and table show ratio, spread, bar, assessment and moonshot", () => {
  const result = rows(OURS, { gbps: 2, cpu: 5, rss: 90 }, {
    spoiled: "a |\nb",
  });
  const text = renderText(result);
  assertStringIncludes(text, "down1: bulk");
  assertStringIncludes(text, "2x [2–2]");
  assertStringIncludes(text, "≥1.8x reached, moonshot ≥2.4x not reached");
  const table = renderMarkdown(result, "ours beside others");
  assertStringIncludes(
    table,
    "| bulk | speed Gbit/s | 4 | konnectivity | 2 | 2x [2–2] | ≥1.8x reached | ≥2.4x not reached |",
  );
  assertStringIncludes(table, "| no ratio: a / b |");
});
