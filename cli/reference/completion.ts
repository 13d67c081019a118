/**
 * `tunnel completion`: a script that teaches a shell to complete words.
 *
 * @module
 */

import { GENERAL_FLAGS } from "../flags/log_flags.ts";
import { UsageError } from "../flags/usage_error.ts";
import { type Command, defineCommand } from "../program/command.ts";
import { ExitCode } from "../program/exit_codes.ts";
import { bashScript, zshScript } from "./case_scripts.ts";
import { type CommandWords, commandWords } from "./command_words.ts";
import { fishScript } from "./fish_script.ts";

const SCRIPTS: ReadonlyMap<
  string,
  (commands: readonly CommandWords[]) => string
> = new Map([
  ["bash", bashScript],
  ["zsh", zshScript],
  ["fish", fishScript],
]);

/** @param commands Handed in: they hold this one too. */
export function completionCommand(
  commands: () => Promise<readonly Command[]>,
): Command {
  return defineCommand({
    name: "completion",
    summary: "Print a script that completes words in bash, zsh or fish",
    operands: "bash|zsh|fish [flags]",
    about: [
      "Commands, flags, their values and files are completed from the tables " +
      "of this version; nodes, services and connections are asked for where " +
      "they run, which is quick and silent when nobody answers.",
    ],
    examples: [
      "tunnel completion bash >/etc/bash_completion.d/tunnel",
      "tunnel completion zsh >/usr/local/share/zsh/site-functions/_tunnel",
      "tunnel completion fish >~/.config/fish/completions/tunnel.fish",
    ],
    rights: "look",
    flags: { ...GENERAL_FLAGS },
    async run({ operands: [shell = "", ...others] }, { print }) {
      const script = SCRIPTS.get(shell);
      const wanted = [...SCRIPTS.keys()].join(", ");
      if (script === undefined || others.length > 0) {
        throw new UsageError(
          `Cannot complete ${shell === "" ? "for no shell" : `"${shell}"`}: ` +
            `wanted one of ${wanted}, as in tunnel completion bash`,
        );
      }
      print(script(commandWords(await commands())));
      return ExitCode.OK;
    },
  });
}
