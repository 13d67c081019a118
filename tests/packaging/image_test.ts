/** The image starts the program as the launcher does, with all rights. */

import { assertEquals } from "@std/assert";
import { RIGHTS } from "../../cli/program/rights.ts";
import { RUN_FLAGS } from "../../scripts/package.ts";

Deno.test("the image's words are those of the launcher", () => {
  const path = new URL("../../deploy/image/Containerfile", import.meta.url);
  const file = Deno.readTextFileSync(path);
  const started = [
    ...["/usr/lib/tunnel/runtime/tunnel", "run", ...RUN_FLAGS],
    ...[...RIGHTS.programs, "/usr/lib/tunnel/program/main.js"],
  ];
  for (
    const [word, more] of [
      ["ENTRYPOINT", []],
      ["HEALTHCHECK .* CMD", ["status", "--exit-code"]],
    ] as const
  ) {
    const [, words = ""] = new RegExp(`^${word} (.*)$`, "m").exec(file) ?? [];
    assertEquals(JSON.parse(words), [...started, ...more]);
  }
});
