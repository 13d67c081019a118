import { assertEquals } from "@std/assert";
import { groupsOf, isFastTest, readTestTotal, withoutPasses } from "./tests.ts";

Deno.test("slow tests, scenarios and what is no test are not fast tests", () => {
  const paths = [
    "proto/a_test.ts",
    "proto/a_slow_test.ts",
    "proto/a.ts",
    "tests/scenarios/a_test.ts",
    "tests/docs_test.ts",
  ];
  assertEquals(paths.filter(isFastTest), [
    "proto/a_test.ts",
    "tests/docs_test.ts",
  ]);
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
