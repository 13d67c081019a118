import { assertEquals } from "@std/assert";
import { typescriptFiles } from "./project_files.ts";
import {
  groupsOf,
  inOrder,
  kindOf,
  NAMED,
  readTestTotal,
  withoutPasses,
} from "./tests.ts";

Deno.test("a test is fast unless it says that it is slow", () => {
  assertEquals(kindOf("proto/a_test.ts"), "fast");
  assertEquals(kindOf("tests/scenarios/a_test.ts"), "fast");
  assertEquals(kindOf("proto/a_slow_test.ts"), "slow");
  assertEquals(kindOf("tests/scenarios/bench_slow_test.ts"), "alone");
  assertEquals(kindOf("proto/a.ts"), undefined);
});

/** What starts a program, or lets time pass: a turn of the event loop is none. */
const SLOW = [
  /\bDeno\.Command\b/,
  /\bnew (?:Child|Worker|ServerProcess|Processes)\b/,
  /\b(?:TunnelProcesses|ForwardingServers)\.(?:open|start)\b/,
  /\b(?:Node|Proxy)Stage\.open\b|\bMeetingServers\.open\b/,
  /\bWorkspace\.make\b/,
  /\bAbortSignal\.timeout\(/,
  /\bsleep\(/,
  /\bsetTimeout\(\w+, [^0\s]/,
];

const SPEAK_OF_IT = new Set([
  "scripts/lint_plugin_test.ts",
  "scripts/tests_test.ts",
]);

Deno.test("no fast test starts a program or lets time pass", async () => {
  const files = (await typescriptFiles()).filter((path) =>
    kindOf(path) === "fast" && !SPEAK_OF_IT.has(path)
  );
  const found = [];
  for (const path of files) {
    for (const line of (await Deno.readTextFile(path)).split("\n")) {
      if (SLOW.some((one) => one.test(line))) found.push(`${path}: ${line}`);
    }
  }
  assertEquals(found, []);
});

Deno.test("what takes longest begins first, and the rest keeps its order", () => {
  const long = "tests/scenarios/forwarding_slow_test.ts";
  const longer = "tests/mistakes/mistakes_slow_test.ts";
  assertEquals(inOrder(["a", long, "b", longer]), [longer, long, "a", "b"]);
});

Deno.test("every file that is said to be long or alone is there", async () => {
  const files = await typescriptFiles();
  const isThere = (place: string) =>
    files.some((path) => path.startsWith(place));
  assertEquals(NAMED.filter((place) => !isThere(place)), []);
});

Deno.test("every file is in one group, and no group is empty", () => {
  assertEquals(groupsOf(["a", "b", "c"], 2), [["a", "c"], ["b"]]);
  assertEquals(groupsOf(["a"], 3), [["a"]]);
});

Deno.test("the total of deno test is read with steps and ignored tests", () => {
  const output = "x ... ok (1ms)\n\nFAILED | 12 passed (3 steps) | 1 failed " +
    "(1 step) | 2 ignored (19s)\n";
  assertEquals(readTestTotal(output), { passed: 12, failed: 1, skipped: 2 });
  assertEquals(readTestTotal("ok | 3 passed | 0 failed (2ms)\n"), {
    passed: 3,
    failed: 0,
    skipped: 0,
  });
  assertEquals(readTestTotal("error: it broke down\n"), undefined);
});

Deno.test("what passed is left out of what is shown", () => {
  const output = "a ... ok (1ms)\nb ... FAILED (2ms)\nc ... ok (12µs)\nwhy\n";
  assertEquals(withoutPasses(output), "b ... FAILED (2ms)\nwhy");
});
