import { assert, assertEquals } from "@std/assert";
import { manPages } from "./man_pages.ts";

Deno.test("pages are of each command, and say each flag", async () => {
  const pages = await manPages();
  const { COMMANDS } = await import("../cli/commands.ts");
  assertEquals(
    [...pages.keys()].length,
    Object.keys(COMMANDS).filter((name) => name !== "complete-names").length +
      1,
  );
  const page = pages.get("tunnel-dial.1")!;
  const { flags } = await COMMANDS["dial"]!();
  for (const name of Object.keys(flags)) {
    assert(page.includes(`\\-\\-${name.replaceAll("-", "\\-")}`), name);
  }
  assert(!pages.has("tunnel-complete-names.1"));
});
