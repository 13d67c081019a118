/**
 * `tunnel version`: the version of the program and its platform.
 *
 * @module
 */

import { defineCommand } from "./program/command.ts";
import { inGroup } from "./flags/flag.ts";
import { FORM_FLAG, GENERAL_FLAGS, JSON_FLAG } from "./flags/program_flags.ts";
import { versionText } from "./program/version.ts";

/** See the module description. */
export const VERSION_COMMAND = defineCommand({
  name: "version",
  about: ["Prints the versions of tunnel, Deno, V8 and TypeScript."],
  examples: ["tunnel version", "tunnel version --output json"],
  rights: "look",
  flags: {
    ...inGroup("Output", { ...FORM_FLAG, ...JSON_FLAG }),
    "help": GENERAL_FLAGS["help"],
  },
  run({ values }, { print }) {
    print(versionText(values["output"]));
  },
});
