import { assertEquals } from "@std/assert";
import { readTotal, Tally } from "./tally.ts";

Deno.test("a tally counts, says why, and prints the total last", async () => {
  const lines: string[] = [];
  const tally = new Tally((line) => lines.push(line));
  await tally.run("good", () => Promise.resolve());
  await tally.run("bad", () => Promise.reject(new Error("one\ntwo")));
  tally.skip("later", "no root");
  assertEquals(tally.end(), 1);
  assertEquals(lines.slice(1), [
    "FAIL bad\n     one\n     two",
    "SKIP later (no root)",
    "1 passed, 1 failed, 1 skipped",
  ]);
});

Deno.test("a tally without a failure ends with 0", () => {
  const tally = new Tally(() => {});
  tally.pass("good");
  tally.skip("later", "no root");
  assertEquals(tally.end(), 0);
});

Deno.test("readTotal() takes the last total and only a whole line", () => {
  const output = "1 passed, 0 failed, 0 skipped\nPASS x\n" +
    "12 passed, 3 failed, 4 skipped\nsaid 9 passed, 9 failed, 9 skipped\n";
  assertEquals(readTotal(output), { passed: 12, failed: 3, skipped: 4 });
  assertEquals(readTotal("nothing of that kind\n"), undefined);
});
