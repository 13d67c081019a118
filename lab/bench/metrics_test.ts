import { assert, assertEquals } from "@std/assert";
import { FULL, supports } from "./metric.ts";
import { METRICS } from "./metrics.ts";

Deno.test("every metric has one way of running, figures and ours among its contenders", () => {
  for (const [name, metric] of Object.entries(METRICS)) {
    const ways = [metric.load, metric.run].filter((way) => way !== undefined);
    assertEquals(ways.length, 1, name);
    assert(metric.figures.length > 0, name);
    assert(supports(metric, "ours"), name);
  }
});

Deno.test("a route that only frontends have is for those that have them", () => {
  const who = (name: string) =>
    (["konnectivity", "frp", "direct"] as const)
      .filter((contender) => supports(METRICS[name]!, contender));
  assertEquals(who("conn"), ["konnectivity", "frp", "direct"]);
  assertEquals(who("conn-grpc"), ["konnectivity"]);
  assertEquals(who("stall-grpc-client-8"), []);
});

Deno.test("memory is waited for only where it is assessed", () => {
  const settle = (name: "ours" | "konnectivity") =>
    METRICS["idle"]!.load!(FULL, name).find((it) => it.startsWith("-settle"));
  assertEquals([settle("ours"), settle("konnectivity")], [
    "-settle=60s",
    "-settle=0s",
  ]);
});
