import { assertEquals } from "@std/assert";
import { openLibc } from "../libc/libc.ts";
import { isOfOurContainer } from "./process_namespace.ts";

const canNest = openLibc() !== undefined && Deno.uid() === 0 &&
  (await new Deno.Command("unshare", {
    args: ["--pid", "--fork", "true"],
    ...{ stdout: "null", stderr: "null" },
  }).output().catch(() => ({ success: false }))).success;

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
    // Says that it is there, and ends when nobody listens to it any more.
    const parent = new Deno.Command("unshare", {
      args: ["--pid", "--fork", "--kill-child", "sh", "-c", "echo up; cat"],
      ...{ stdin: "piped", stdout: "piped" },
    }).spawn();
    const reader = parent.stdout.getReader();
    await reader.read();
    const path = `/proc/${parent.pid}/task/${parent.pid}/children`;
    const inside = Number((await Deno.readTextFile(path)).trim());
    assertEquals(isOfOurContainer(parent.pid), true);
    assertEquals(isOfOurContainer(inside), false);
    await parent.stdin.close();
    await reader.cancel();
    await parent.status;
  },
});
