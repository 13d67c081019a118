import { assertEquals, assertStringIncludes } from "@std/assert";
import { tunnel } from "../tests/support/program/command_line.ts";
import { COMMANDS, GROUPS } from "./commands.ts";

Deno.test("each command but one for scripts stands in one group of the help", () => {
  assertEquals(
    [...Object.values(GROUPS).flatMap(Object.keys), "complete-names"].sort(),
    [...Object.keys(COMMANDS), "help"].sort(),
  );
});

Deno.test("the help of a big command is short, and whole with --all", async () => {
  for (const name of ["server", "agent", "proxy"]) {
    const brief = await tunnel(["help", name]);
    const whole = await tunnel(["help", name, "--all"]);
    const flagsIn = (text: string) => text.match(/^ +(?:-\w, )?--/gm)!.length;
    const [few, all] = [flagsIn(brief.output), flagsIn(whole.output)];
    assertEquals(few >= 8 && few <= all * 0.45, true, `${name}: ${few}/${all}`);
    assertStringIncludes(brief.output, "more flags: --help --all");
    const asked = await tunnel([name, "--help", "--all"]);
    assertEquals(asked.output, whole.output);
  }
  const small = await tunnel(["help", "dial"]);
  assertEquals(small.output.includes("--all"), false);
});
