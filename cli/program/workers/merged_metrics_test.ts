import { assertEquals } from "@std/assert";
import { MergedMetrics } from "./merged_metrics.ts";

function text(kind: string, name: string, ...lines: string[]): string {
  return `# HELP ${name} help\n# TYPE ${name} ${kind}\n` +
    lines.map((line) => `${line}\n`).join("");
}

Deno.test("counters, histograms and gauges of two workers are added", () => {
  const merged = new MergedMetrics();
  const of = (count: number) =>
    text("counter", "a_total", `a_total{b="c d"} ${count}`) +
    text("histogram", "h", `h_bucket{le="+Inf"} ${count}`, `h_sum ${count}`) +
    text("gauge", "g_links", `g_links ${count}`);
  merged.take(0, 10, of(1));
  merged.take(1, 11, of(2) + text("gauge", "only", "only 7"));
  assertEquals(merged.text(), of(3) + text("gauge", "only", "only 7"));
});

Deno.test("what all workers have is shown once", () => {
  const merged = new MergedMetrics();
  merged.take(0, 10, text("gauge", "x_server_count", "x_server_count 2"));
  merged.take(1, 11, text("gauge", "x_server_count", "x_server_count 3"));
  const end = (seconds: number) =>
    text("gauge", "c_timestamp_seconds", `c_timestamp_seconds ${seconds}`);
  merged.take(2, 12, end(20));
  merged.take(3, 13, end(10));
  assertEquals(
    merged.text(),
    text("gauge", "x_server_count", "x_server_count 3") + end(10),
  );
});

Deno.test("a counter does not go back when a worker is replaced, a gauge does", () => {
  const merged = new MergedMetrics();
  const of = (count: number) =>
    text("counter", "a_total", `a_total ${count}`) +
    text("gauge", "g", `g ${count}`);
  merged.take(0, 10, of(5));
  merged.take(0, 10, of(6));
  merged.take(0, 20, of(1));
  assertEquals(
    merged.text(),
    text("counter", "a_total", "a_total 7") + text("gauge", "g", "g 1"),
  );
  assertEquals(merged.valueOf(0, "a_total"), 1);
});
