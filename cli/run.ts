/**
 * From the words behind `tunnel` to an exit code.
 *
 * @module
 */

import { withoutTokens } from "../proto/identity/join_token.ts";
import type { CommandContext } from "./command.ts";
import { COMMANDS } from "./commands.ts";
import { ExitCode } from "./exit_codes.ts";
import { help, unknownCommand } from "./help.ts";
import { UsageError } from "./usage_error.ts";
import {
  isSocketChoice,
  SOCKET_CHOICES,
  SOCKETS_VARIABLE,
} from "../host/sockets/polled/socket_choice.ts";

/** Other ways to ask for the same command. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ["-h", "help"],
  ["--help", "help"],
  ["--version", "version"],
]);

/**
 * Runs the command that `argv` names.
 *
 * @param asked Whose `argv` still begins with the command's name.
 */
export async function run(asked: CommandContext): Promise<ExitCode> {
  // Refusals repeat the words they are about; logs and tickets keep refusals.
  const printError = (text: string) => asked.printError(withoutTokens(text));
  const context = { ...asked, printError };
  const [word = "help", ...argv] = context.argv;
  const name = ALIASES.get(word) ?? word;
  try {
    if (name === "help") return await help({ ...context, argv });
    const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (load === undefined) throw unknownCommand(name);
    checkSocketChoice(context);
    const command = await load();
    return await command.run({ ...context, argv });
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    context.printError(`tunnel: ${error.message}\n`);
    return ExitCode.USAGE;
  }
}

/** Who asks for other sockets is in trouble already: a slip must not look like none. */
function checkSocketChoice({ environment }: CommandContext): void {
  const text = environment(SOCKETS_VARIABLE) ?? "";
  if (text === "" || isSocketChoice(text)) return;
  throw new UsageError(
    `Cannot use $${SOCKETS_VARIABLE}: saw "${text}", wanted one of ` +
      SOCKET_CHOICES.join(", "),
  );
}
