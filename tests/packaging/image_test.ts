/** The image starts the program as the launcher does, with all rights. */

import { assertEquals } from "@std/assert";
import { RIGHTS, V8_FLAGS } from "../../cli/program/rights.ts";
import { RUN_FLAGS } from "../../scripts/package.ts";

Deno.test("the image's words are those of the launcher", () => {
  const path = new URL("../../deploy/image/Containerfile", import.meta.url);
  const file = Deno.readTextFileSync(path);
  const wordsOf = (start: string): unknown =>
    JSON.parse(new RegExp(`^${start} (.*)$`, "m").exec(file)?.[1] ?? "null");
  assertEquals(wordsOf("ENTRYPOINT"), [
    ...["/usr/lib/tunnel/runtime/tunnel", "run"],
    // The script of `kubectl exec` has them from the environment, too.
    ...RUN_FLAGS.filter((flag) => flag !== V8_FLAGS),
    ...[...RIGHTS.programs, "/usr/lib/tunnel/program/main.js"],
  ]);
  const flags = V8_FLAGS.replace("--v8-flags=", "DENO_V8_FLAGS=");
  assertEquals(/^ENV .*$/m.exec(file)?.[0].split(" ").includes(flags), true);
  assertEquals(
    wordsOf("HEALTHCHECK .* CMD"),
    ["/usr/bin/tunnel", "status", "--exit-code"],
  );
});
