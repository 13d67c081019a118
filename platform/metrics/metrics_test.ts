import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { MetricRegistry } from "./metrics.ts";
import { registerProcessMetrics } from "./process_metrics.ts";

Deno.test("expose() writes HELP, TYPE and values as given", () => {
  const registry = new MetricRegistry();
  registry.series("gauge", "open", "Open things.").set(3);
  registry.computed("counter", "seconds_total", "Seconds.", () => 1.5);
  assertEquals(
    registry.expose(),
    "# HELP open Open things.\n# TYPE open gauge\nopen 3\n" +
      "# HELP seconds_total Seconds.\n# TYPE seconds_total counter\n" +
      "seconds_total 1.5\n",
  );
});

Deno.test("a family with labels appears after its first use, and nothing else does", () => {
  const registry = new MetricRegistry();
  const failures = registry.labelled("counter", "failures", "F.", ["reason"]);
  assertEquals(registry.expose(), "");
  failures.with("timeout").add();
  failures.with("timeout").add(2);
  assertEquals(
    registry.expose(),
    '# HELP failures F.\n# TYPE failures counter\nfailures{reason="timeout"} 3\n',
  );
});

Deno.test("label values cannot break out of their quotes", () => {
  const registry = new MetricRegistry();
  const series = registry.labelled("gauge", "g", "a\\b\nc", ["x", "y"]);
  series.with('say "hi"\n', "\\").set(1);
  assertEquals(
    registry.expose(),
    '# HELP g a\\\\b\\nc\n# TYPE g gauge\ng{x="say \\"hi\\"\\n",y="\\\\"} 1\n',
  );
});

Deno.test("computed series with labels are asked at each scrape", () => {
  const registry = new MetricRegistry();
  let agents = 1;
  registry.computedLabelled("gauge", "g", "G.", ["s"], () => [[["a"], agents]]);
  agents = 2;
  assertEquals(registry.expose(), '# HELP g G.\n# TYPE g gauge\ng{s="a"} 2\n');
});

Deno.test("histogram buckets are cumulative and count what is above them all", () => {
  const registry = new MetricRegistry();
  const histogram = registry.histogram("h", "H.", [0.1, 1]);
  for (const value of [0.1, 0.5, 2]) histogram.observe(value);
  assertEquals(
    registry.expose(),
    "# HELP h H.\n# TYPE h histogram\n" +
      'h_bucket{le="0.1"} 1\nh_bucket{le="1"} 2\nh_bucket{le="+Inf"} 3\n' +
      "h_sum 2.6\nh_count 3\n",
  );
});

Deno.test("histograms with a label are shown after their first use", () => {
  const registry = new MetricRegistry();
  const family = registry.labelledHistogram("h", "H.", "code", [0.1]);
  assertEquals(registry.expose(), "");
  family.with("200").observe(0.05);
  family.with("403").observe(1);
  family.with("200").observe(1);
  assertEquals(
    registry.expose(),
    "# HELP h H.\n# TYPE h histogram\n" +
      'h_bucket{code="200",le="0.1"} 1\nh_bucket{code="200",le="+Inf"} 2\n' +
      'h_sum{code="200"} 1.05\nh_count{code="200"} 2\n' +
      'h_bucket{code="403",le="0.1"} 0\nh_bucket{code="403",le="+Inf"} 1\n' +
      'h_sum{code="403"} 1\nh_count{code="403"} 1\n',
  );
});

Deno.test("bucket bounds are spelt as Go spells them", () => {
  const registry = new MetricRegistry();
  registry.histogram("h", "H.", [1e-6, 1e-5, 1e-4, .005, 12.5, 86_400]);
  const bounds = [...registry.expose().matchAll(/le="([^"]+)"/g)];
  assertEquals(
    bounds.map(([, bound]) => bound),
    ["1e-06", "1e-05", "0.0001", "0.005", "12.5", "86400", "+Inf"],
  );
});

Deno.test("a name is taken once", () => {
  const registry = new MetricRegistry();
  registry.series("gauge", "g", "G.");
  assertThrows(() => registry.series("gauge", "g", "G."), TypeError);
});

Deno.test("a process reports its memory and processor time", () => {
  const registry = new MetricRegistry();
  registerProcessMetrics(registry);
  const text = registry.expose();
  for (const name of ["cpu_seconds_total", "resident_memory_bytes"]) {
    assertMatch(text, new RegExp(`^process_${name} [0-9.]+$`, "m"));
  }
});

Deno.test("OpenMetrics has exemplars, and names counters as it wants them", () => {
  const registry = new MetricRegistry();
  registry.series("counter", "seen_total", "S.").add(2);
  registry.series("counter", "failure_count", "F.").add();
  registry.series("gauge", "open", "O.").add();
  registry.series("counter", "open_total", "O.").add();
  const histogram = registry.histogram("h_seconds", "H.", [0.1, 1]);
  assertEquals(registry.hasExemplars, false);
  const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
  histogram.observe(0.5, traceId);
  histogram.observe(5);
  assertEquals(registry.hasExemplars, true);
  assertEquals(registry.expose().includes("trace_id"), false);
  const lines = [...registry.pieces("openmetrics")].join("").split("\n");
  const exemplar = lines.find((line) => line.includes(" # "))!;
  assertMatch(
    exemplar,
    /^h_seconds_bucket\{le="1"\} 1 # \{trace_id="4bf92f[0-9a-f]+"\} 0.5 \d+(\.\d+)?$/,
  );
  assertEquals(lines.filter((line) => !line.includes(" # ")), [
    ...["# HELP seen S.", "# TYPE seen counter", "seen_total 2"],
    ...["# HELP failure_count F.", "# TYPE failure_count unknown"],
    "failure_count 1",
    ...["# HELP open O.", "# TYPE open gauge", "open 1"],
    ...["# HELP open_total O.", "# TYPE open_total unknown", "open_total 1"],
    ...["# HELP h_seconds H.", "# TYPE h_seconds histogram"],
    'h_seconds_bucket{le="0.1"} 0',
    'h_seconds_bucket{le="+Inf"} 2',
    ...["h_seconds_sum 5.5", "h_seconds_count 2", "# EOF", ""],
  ]);
});
