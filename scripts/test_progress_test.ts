import { assertEquals, assertStringIncludes } from "@std/assert";
import { TestProgress } from "./test_progress.ts";

function reported(progress: TestProgress, output: string): string[] {
  return output.split("\n").map((line) => progress.take(line))
    .filter((line) => line !== undefined);
}

Deno.test("progress counts what is checked, then files and tests", () => {
  const progress = new TestProgress(3);
  reported(progress, "Check a_test.ts\nCheck b_test.ts");
  assertEquals(progress.status, "types are checked, of 2 of 3 files");
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
  assertEquals(progress.status, "2 of 3 files, 1 tests passed, 1 FAILED");
});

Deno.test("files that run beside each other are told apart", () => {
  const progress = new TestProgress(2);
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
  assertEquals(progress.status, "2 of 2 files, 2 tests passed, 2 FAILED");
});

Deno.test("the end is what failed, in full, and one line that is counted", () => {
  const progress = new TestProgress();
  reported(
    progress,
    "running 2 tests from ./a_test.ts\none ... ok (1ms)\ntwo ... FAILED (2s)\n" +
      "\n ERRORS \n\ntwo => ./a_test.ts:1:6\nerror: why\n\n FAILURES \n\n" +
      "two => ./a_test.ts:1:6\n\nFAILED | 1 passed (3 steps) | 1 failed (2s)\n",
  );
  const end = progress.end(75.4, false);
  assertEquals(end.startsWith(" ERRORS \n\ntwo => ./a_test.ts:1:6\n"), true);
  assertEquals(end.split("\n").slice(-2), [
    "1 files in 1 min 15 s",
    "1 passed, 1 failed, 0 skipped",
  ]);
});

Deno.test("a run that breaks down is a failure, and says all that it said", () => {
  const progress = new TestProgress();
  reported(progress, "Check a_test.ts\nerror: TS2322\nwhy");
  const end = progress.end(1, false);
  assertStringIncludes(end, "error: TS2322\nwhy\n");
  assertEquals(end.split("\n").at(-1), "0 passed, 1 failed, 0 skipped");
  const uncaught = new TestProgress();
  reported(uncaught, "running 1 test from ./a_test.ts");
  assertEquals(reported(uncaught, "Uncaught error from ./a_test.ts FAILED"), [
    "FAIL uncaught error (a_test.ts)",
  ]);
});

Deno.test("a run that is good says hardly anything", () => {
  const progress = new TestProgress(1);
  reported(progress, "running 1 test from ./a_test.ts\none ... ok (1ms)");
  reported(progress, "\nok | 1 passed | 0 failed | 2 ignored (1ms)\n");
  assertEquals(
    progress.end(4, true),
    [
      "1 files in 0 min 4 s",
      "1 passed, 0 failed, 2 skipped",
    ].join("\n"),
  );
});
