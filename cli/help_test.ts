import { assertEquals, assertStringIncludes } from "@std/assert";
import { runCommand } from "../tests/support/rigs/fake_admin.ts";
import { COMMANDS, GROUPS } from "./commands.ts";

Deno.test("each command but one for scripts stands in one group of the help", () => {
  assertEquals(
    [...Object.values(GROUPS).flatMap(Object.keys), "complete-names"].sort(),
    [...Object.keys(COMMANDS), "help"].sort(),
  );
});

Deno.test("the help of a big command is short, and whole with --all", async () => {
  for (const name of ["server", "agent", "proxy"]) {
    const brief = await runCommand(["help", name]);
    const whole = await runCommand(["help", name, "--all"]);
    const flagsIn = (text: string) => text.match(/^ +(?:-\w, )?--/gm)!.length;
    const [few, all] = [flagsIn(brief.stdout), flagsIn(whole.stdout)];
    assertEquals(few >= 8 && few <= all * 0.45, true, `${name}: ${few}/${all}`);
    assertStringIncludes(brief.stdout, "more flags: --help --all");
    const asked = await runCommand([name, "--help", "--all"]);
    assertEquals(asked.stdout, whole.stdout);
  }
  const small = await runCommand(["help", "dial"]);
  assertEquals(small.stdout.includes("--all"), false);
});
