/**
 * `tunnel man`: manual pages in man(7), from the tables of commands and flags.
 *
 * @module
 */

import { GENERAL_FLAGS } from "../flags/log_flags.ts";
import { UsageError } from "../flags/usage_error.ts";
import { type Command, defineCommand } from "../program/command.ts";
import { ExitCode } from "../program/exit_codes.ts";
import { commandPage, overviewPage } from "./man_page.ts";

/** @param commands Handed in: they hold this one too. */
export function manCommand(
  commands: () => Promise<readonly Command[]>,
): Command {
  return defineCommand({
    name: "man",
    summary: "Print a manual page for man(1)",
    operands: "[COMMAND] [flags]",
    about: [
      "Without a command it prints tunnel(1), with one tunnel-COMMAND(1). The " +
      "package brings all of them in man/.",
    ],
    examples: ["tunnel man dial | man -l -"],
    rights: "look",
    flags: { ...GENERAL_FLAGS },
    async run({ operands: [name, ...others] }, { print }) {
      const shown = (await commands()).filter(({ isHidden }) => !isHidden);
      if (others.length > 0) {
        throw new UsageError(
          `Unexpected word "${others[0]}"; wanted one command, as in ` +
            "tunnel man dial",
          "TUN101",
        );
      }
      if (name === undefined) {
        print(overviewPage(shown));
        return ExitCode.OK;
      }
      const command = shown.find((each) => each.name === name);
      if (command === undefined) {
        throw new UsageError(
          `Unknown command "${name}" (tunnel help lists all)`,
          "TUN101",
        );
      }
      print(commandPage(command));
      return ExitCode.OK;
    },
  });
}
