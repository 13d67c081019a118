/**
 * `tunnel version`: which program this is and what it runs on.
 *
 * @module
 */

import { defineCommand, refuseOperands } from "./program/command.ts";
import { ExitCode } from "./program/exit_codes.ts";
import { booleanFlag, choiceFlag } from "./flags/flag.ts";
import { GENERAL_FLAGS } from "./flags/log_flags.ts";
import { versionText } from "./program/version.ts";

/** See the module description. */
export const VERSION_COMMAND = defineCommand({
  name: "version",
  summary: "Print the version of this program and of what it runs on",
  operands: "[flags]",
  about: ["Prints the versions of tunnel, Deno, V8 and TypeScript."],
  examples: ["tunnel version", "tunnel version --output json"],
  rights: "look",
  flags: {
    "output": choiceFlag(["text", "json"], "text", {
      group: "Output",
      short: "o",
      help: "For people or for machines.",
    }),
    "json": booleanFlag(false, {
      group: "Output",
      help: "The same as --output json.",
    }),
    "help": GENERAL_FLAGS["help"],
  },
  run({ values, operands }, context) {
    refuseOperands(operands);
    context.print(versionText(values["json"] ? "json" : values["output"]));
    return ExitCode.OK;
  },
});
