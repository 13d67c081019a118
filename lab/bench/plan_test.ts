import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Metric } from "./metric.ts";
import { readPlan } from "./plan.ts";

const METRICS: Readonly<Record<string, Metric>> = {
  quick: { title: "", figures: [], isQuick: true },
  slow: { title: "", figures: [] },
  rare: { title: "", figures: [], isOnRequest: true },
};

function plan(...words: readonly string[]) {
  const result = readPlan(words, METRICS);
  assert(typeof result !== "string", String(result));
  return result;
}

Deno.test("without words everything is measured beside Konnectivity", () => {
  const { metrics, a, peers, rounds } = plan();
  assertEquals(metrics, ["quick", "slow"]);
  assertEquals([a, peers, rounds], ["ours", ["konnectivity"], 5]);
});

Deno.test("--quick takes the main metrics, unless some are named", () => {
  assertEquals(plan("--quick").metrics, ["quick"]);
  assertEquals(plan("--quick", "rare", "slow").metrics, ["rare", "slow"]);
});

Deno.test("a contender may be measured beside itself, and beside several", () => {
  assertEquals(plan("--a=konnectivity").a, "konnectivity");
  assertEquals(plan("--b", "frp").peers, ["frp"]);
  assertEquals(plan("--peers=direct,ssh,ours").peers, [
    "direct",
    "ssh",
    "ours",
  ]);
});

Deno.test("what the bench does not know is refused with what it knows", () => {
  for (
    const [words, reason] of [
      [["fast"], /unknown metric 'fast': quick slow rare/],
      [["--peers=frp,bore"], /unknown contender 'bore': ours .*chisel/],
      [["--rounds=0"], /1 or more/],
      [["--peer=frp"], /unknown flag --peer=frp/],
      [["--b=frp", "--peers=frp"], /one of them/],
    ] as const
  ) {
    const result = readPlan(words, METRICS);
    assert(typeof result === "string");
    assertMatch(result, reason);
  }
});
