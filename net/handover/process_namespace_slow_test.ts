import { assertEquals } from "@std/assert";
import { PrintedLines } from "../../tests/support/peers/printed_lines.ts";
import { openLibc } from "../libc/libc.ts";
import { isOfOurContainer } from "./upgrade_requests.ts";

const canNest = openLibc() !== undefined && Deno.uid() === 0 &&
  (await new Deno.Command("unshare", {
    args: ["--pid", "--fork", "true"],
    ...{ stdout: "null", stderr: "null" },
  }).output().catch(() => ({ success: false }))).success;

/** `/proc/self` is the child that reads it; its parent is the shell. */
const SAY_AND_WAIT =
  "grep ^PPid: /proc/self/status | { read -r _ own; echo $own; }; cat";

Deno.test({
  name: "processes beside us are of our container, those in another are not",
  ignore: !canNest,
  fn: async () => {
    assertEquals(isOfOurContainer(Deno.pid), true);
    assertEquals(isOfOurContainer(Deno.ppid), true);
    assertEquals([isOfOurContainer(0), isOfOurContainer(2 ** 30)], [
      false,
      false,
    ]);
    // Says who its child is by the names that hold outside, where `/proc` is of
    // outside, and ends when nobody listens to it any more.
    const parent = new Deno.Command("unshare", {
      args: ["--pid", "--fork", "--kill-child", "sh", "-c", SAY_AND_WAIT],
      ...{ stdin: "piped", stdout: "piped" },
    }).spawn();
    const lines = new PrintedLines(parent.stdout);
    const inside = Number(await lines.next());
    assertEquals(isOfOurContainer(parent.pid), true);
    assertEquals(isOfOurContainer(inside), false);
    await parent.stdin.close();
    await lines[Symbol.asyncDispose]();
    await parent.status;
  },
});
