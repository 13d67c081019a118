// deno-lint-ignore-file no-console -- a command that says what it does.
/**
 * `dist/tunnel` with `deno compile`, which fetches its runtime (denort) from
 * Deno's own host. Where that cannot be reached, `deno task release` needs only
 * the npm registry.
 *
 * Usage: `deno task compile`
 *
 * @module
 */

import { RIGHTS, V8_FLAGS } from "../cli/program/rights.ts";

const { code } = await new Deno.Command(Deno.execPath(), {
  args: [
    "compile",
    // What is shipped is what deno.lock has hashes of.
    "--frozen",
    V8_FLAGS,
    "--no-prompt",
    ...RIGHTS.programs,
    "--output=dist/tunnel",
    "main.ts",
  ],
}).spawn().status;
if (code !== 0) {
  console.error(
    "Cannot compile: see above. If denort could not be fetched, use " +
      "`deno task release`",
  );
}
Deno.exitCode = code;
