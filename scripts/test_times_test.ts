import { assertEquals } from "@std/assert";
import { stepTable, testTable, timesIn } from "./test_times.ts";

Deno.test("times are read from a report of deno test, names as they were", () => {
  const xml = '<testsuite name="./a_test.ts" tests="2">\n' +
    '<testcase name="a &lt;b&gt; &quot;c&quot;" classname="./a_test.ts" ' +
    'time="1.250" line="4" col="6">\n</testcase>\n' +
    '<testcase name="d" classname="./a_test.ts" time="0.001" line="9" col="6">';
  assertEquals(timesIn(xml), [
    { name: 'a <b> "c"', file: "a_test.ts", seconds: 1.25 },
    { name: "d", file: "a_test.ts", seconds: 0.001 },
  ]);
});

Deno.test("the longest stand first, and a name breaks no table", () => {
  const steps = [
    { name: "ok", seconds: 30, cpuSeconds: 40, passed: 5 },
    { name: "test", seconds: 90.4, cpuSeconds: 160, passed: 7 },
  ].map((step) => ({ ...step, failed: 0, skipped: 1 }));
  assertEquals(stepTable({ seconds: 100, steps }).split("\n").slice(2), [
    "| test | 8 | 90 s | 160 s |",
    "| ok | 6 | 30 s | 40 s |",
    "| all | | 100 s | 200 s |",
  ]);
  const table = testTable([
    { name: "one", file: "a_test.ts", seconds: 1 },
    { name: "a|b", file: "b_test.ts", seconds: 2 },
  ]);
  assertEquals(table.split("\n").slice(2), [
    "| a\\|b | `b_test.ts` | 2.0 s |",
    "| one | `a_test.ts` | 1.0 s |",
  ]);
});
