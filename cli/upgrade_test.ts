import { assert, assertStringIncludes } from "@std/assert";
import { inMemoryFolder } from "../tests/support/memory/memory_folder.ts";
import { run } from "./run.ts";
import { ran } from "../tests/support/program/command_line.ts";

Deno.test({
  name: "a file that others can change, or own, is not run",
  ignore: Deno.build.os === "windows",
  fn: () =>
    inMemoryFolder(async (folder) => {
      const [file, mark] = [`${folder}/tunnel`, `${folder}/was-run`];
      await Deno.writeTextFile(file, `#!/bin/sh\ntouch ${mark}\n`);
      const refusalOf = async () => (await ran(run, ["upgrade", file])).errors;
      for (const mode of [0o777, 0o775, 0o757]) {
        await Deno.chmod(file, mode);
        assertStringIncludes(
          await refusalOf(),
          `its mode is 0${mode.toString(8)}, wanted 0755: others could ` +
            "change it",
        );
      }
      if (Deno.uid() === 0) {
        await Deno.chmod(file, 0o755);
        await Deno.chown(file, 65534, 65534);
        assertStringIncludes(await refusalOf(), "it belongs to user 65534");
        await Deno.chown(file, 0, 0);
      }
      const names = [...Deno.readDirSync(folder)].map(({ name }) => name);
      assert(!names.includes("was-run"));
      // As it should be it is run, and is no tunnel.
      await Deno.chmod(file, 0o755);
      assertStringIncludes(await refusalOf(), "it is no tunnel");
      await Deno.stat(mark);
      // One that is packaged looks at itself: what runs may be another copy's.
      const script = '[ -z "${_TUNNEL_CHECK:-}" ] || echo it is damaged >&2';
      await Deno.writeTextFile(file, `#!/bin/sh\n${script}\nexit 1\n`);
      assertStringIncludes(
        await refusalOf(),
        "`version` ends with exit code 1; its last words: it is damaged",
      );
    }),
});
