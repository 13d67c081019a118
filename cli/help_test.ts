import { assertEquals, assertStringIncludes } from "@std/assert";
import { runCommand } from "../tests/support/rigs/fake_admin.ts";
import { COMMANDS } from "./commands.ts";
import { GROUPS } from "./run.ts";

Deno.test("every command that is shown stands in one group of the help", async () => {
  const shown: string[] = ["help"];
  for (const load of Object.values(COMMANDS)) {
    const { name, isHidden } = await load();
    if (!isHidden) shown.push(name);
  }
  assertEquals(Object.values(GROUPS).flat().sort(), shown.sort());
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
