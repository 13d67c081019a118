import { assertEquals, assertStringIncludes } from "@std/assert";
import { TestProgress } from "./test_progress.ts";

function reported(progress: TestProgress, output: string): string[] {
  return output.split("\n").map((line) => progress.take(line))
    .filter((line) => line !== undefined);
}

const run = (ok: boolean, output: string, passed = 0, failed = 0) => ({
  ...{ ok, output, passed, failed, skipped: 0 },
});

Deno.test("progress counts tests, and names what fails at once", () => {
  const progress = new TestProgress();
  const printed = reported(
    progress,
    "running 2 tests from ./a_test.ts\n" +
      "one: a ... b ... ok (1ms)\n" +
      "two ...\n------- output -------\nhello\n----- output end -----\n" +
      "two ... FAILED (2s)\n" +
      "  a step ... ok (1ms)\n" +
      "three ... ignored (0ms)\n" +
      "running 1 test from ./b_test.ts\n" +
      "four ... ok (due to 1 passed step) (1ms)",
  );
  assertEquals(printed, ["FAIL two (a_test.ts)"]);
  assertEquals(progress.status, "2 tests passed, 1 FAILED");
});

Deno.test("files that run beside each other are told apart", () => {
  const progress = new TestProgress();
  const printed = reported(
    progress,
    "./b_test.ts => one ... ok (1ms)\n./a_test.ts => one ... FAILED (1ms)\n" +
      "./b_test.ts => x => y ... ok (1ms)\n" +
      "Uncaught error from ./b_test.ts FAILED",
  );
  assertEquals(printed, [
    "FAIL one (a_test.ts)",
    "FAIL uncaught error (b_test.ts)",
  ]);
  assertEquals(progress.status, "2 tests passed, 2 FAILED");
});

Deno.test("the end is what failed, in full, and one line that is counted", () => {
  const end = new TestProgress().end(75.4, [
    run(
      false,
      "running 2 tests from ./a_test.ts\none ... ok (1ms)\ntwo ... FAILED (2s)\n" +
        "\n ERRORS \n\ntwo => ./a_test.ts:1:6\nerror: why\n\n FAILURES \n\n" +
        "two => ./a_test.ts:1:6\n\nFAILED | 1 passed (3 steps) | 1 failed (2s)\n",
      1,
      1,
    ),
    run(true, "running 1 test from ./b_test.ts\none ... ok (1ms)\n", 1),
  ]);
  assertEquals(end.startsWith(" ERRORS \n\ntwo => ./a_test.ts:1:6\n"), true);
  assertEquals(end.split("\n").slice(-2), [
    "1 min 15 s",
    "2 passed, 1 failed, 0 skipped",
  ]);
});

Deno.test("a run that breaks down says all that it said", () => {
  const end = new TestProgress().end(1, [
    run(false, "error: Module not found\nwhy\n", 0, 1),
  ]);
  assertStringIncludes(end, "error: Module not found\nwhy\n");
  assertEquals(end.split("\n").at(-1), "0 passed, 1 failed, 0 skipped");
});

Deno.test("a run that is good says hardly anything", () => {
  const output = "one ... ok (1ms)\n\nok | 1 passed | 0 failed (1ms)\n";
  assertEquals(
    new TestProgress().end(4, [run(true, output, 1)]),
    "0 min 4 s\n1 passed, 0 failed, 0 skipped",
  );
});
