import { assertEquals, assertThrows } from "@std/assert";
import { MetricsRegistry } from "./metrics.ts";
import { registerProcessMetrics } from "./process_metrics.ts";

Deno.test("families are sorted, each with one HELP and one TYPE", () => {
  const registry = new MetricsRegistry();
  const failures = registry.counterVector({
    name: "x_dial_failure_count",
    help: "Number of dial failures observed.",
    labels: ["reason"],
  });
  const open = registry.gauge({ name: "a_open", help: "Open\nnow." });
  failures.with("error_response").add();
  failures.with("frontend_close").add(2);
  failures.with("error_response").add();
  open.add(3);
  open.add(-1);
  assertEquals(
    registry.write(),
    [
      "# HELP a_open Open\\nnow.",
      "# TYPE a_open gauge",
      "a_open 2",
      "# HELP x_dial_failure_count Number of dial failures observed.",
      "# TYPE x_dial_failure_count counter",
      'x_dial_failure_count{reason="error_response"} 2',
      'x_dial_failure_count{reason="frontend_close"} 2',
      "",
    ].join("\n"),
  );
});

Deno.test("vectors and lazy metrics appear with their first use", () => {
  const registry = new MetricsRegistry();
  const vector = registry.gaugeVector({ name: "v", help: "V", labels: ["l"] });
  const lazy = registry.gauge({ name: "z", help: "Z", lazy: true });
  assertEquals(registry.write(), "");
  lazy.set(0);
  vector.with("a").set(0);
  assertEquals(
    registry.write(),
    '# HELP v V\n# TYPE v gauge\nv{l="a"} 0\n# HELP z Z\n# TYPE z gauge\nz 0\n',
  );
});

Deno.test("a histogram counts cumulatively", () => {
  const registry = new MetricsRegistry();
  const histogram = registry.histogram({
    name: "h",
    help: "H",
    buckets: [0.000001, 0.5, 2.5],
  });
  for (const value of [0.25, 0.5, 2, 100]) histogram.observe(value);
  assertEquals(
    registry.write(),
    [
      "# HELP h H",
      "# TYPE h histogram",
      'h_bucket{le="0.000001"} 0',
      'h_bucket{le="0.5"} 2',
      'h_bucket{le="2.5"} 3',
      'h_bucket{le="+Inf"} 4',
      "h_sum 102.75",
      "h_count 4",
      "",
    ].join("\n"),
  );
});

Deno.test("label values are escaped and counted", () => {
  const registry = new MetricsRegistry();
  const vector = registry.counterVector({
    name: "v",
    help: "V",
    labels: ["a", "b"],
  });
  vector.with('say "hi"', "back\\slash\n").add();
  assertEquals(
    registry.write().split("\n")[2],
    'v{a="say \\"hi\\"",b="back\\\\slash\\n"} 1',
  );
  assertThrows(() => vector.with("one"), TypeError, "2 labels");
  assertThrows(() => registry.gauge({ name: "v", help: "" }), TypeError);
});

Deno.test("the process tells of itself", () => {
  const registry = new MetricsRegistry();
  registerProcessMetrics(registry);
  const values = new Map(
    registry.write().split("\n").filter((line) => /^[a-z]/.test(line))
      .map((line) => line.split(" ") as [string, string]),
  );
  const value = (name: string) => Number(values.get(`process_${name}`));
  assertEquals(value("cpu_seconds_total") > 0, true);
  assertEquals(value("resident_memory_bytes") > 1e6, true);
  assertEquals(
    Math.abs(value("start_time_seconds") * 1000 - Date.now()) < 1e7,
    true,
  );
  if (Deno.build.os === "linux") assertEquals(value("open_fds") > 3, true);
});
