import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { allCommands } from "../cli/commands.ts";
import { RIGHTS, V8_FLAGS } from "../cli/program/rights.ts";
import { windowsScript } from "./windows_script.ts";

const SCRIPT = windowsScript(await allCommands());

Deno.test("tunnel.cmd gives each command the rights that it states", async () => {
  const named = (rights: string) =>
    new RegExp(`^for %%c in \\((.*)\\) do .*"rights=${rights}"\r$`, "m")
      .exec(SCRIPT)![1]!.split(" ");
  for (const { name, rights } of await allCommands()) {
    assertEquals(named("network").includes(name), rights === "network", name);
    assertEquals(named("programs").includes(name), rights === "programs", name);
  }
  for (const flags of Object.values(RIGHTS)) {
    assertStringIncludes(SCRIPT, `set "allow=${flags.join(" ")}"\r\n`);
  }
  assertStringIncludes(SCRIPT, V8_FLAGS);
});

Deno.test("tunnel.cmd lets others be started for the flags that say so", () => {
  for (
    const condition of [
      'if defined KUBECONFIG set "plugins=yes"',
      'if "%word%"=="--workers" set "plugins=yes"',
      'if "%word:~0,1%"=="-" if "%word:~-10%"=="kubeconfig" set "plugins=yes"',
      'if "%word:~0,1%"=="-" if "%word:~-11%"=="kube_config" set "plugins=yes"',
    ]
  ) assertStringIncludes(SCRIPT, `\r\n${condition}\r\n`);
});

Deno.test("tunnel.cmd goes to labels that are there, in lines of Windows", () => {
  for (const [, label] of SCRIPT.matchAll(/\b(?:goto |call :)(\w+)/g)) {
    assertStringIncludes(SCRIPT, `\r\n:${label}\r\n`);
  }
  assert(!/[^\r]\n/.test(SCRIPT));
  // A plain one would move %0, too, which says where the runtime is.
  assert(!/^shift\r$/m.test(SCRIPT));
});
