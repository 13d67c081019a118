/**
 * From the words behind `tunnel` to an exit code.
 *
 * @module
 */

import { withoutTokens } from "../proto/identity/join_token.ts";
import { withCode } from "../proto/codes/coded.ts";
import { asFaultOfOurs } from "../platform/errors/missing_right.ts";
import type { CommandContext } from "./program/command.ts";
import { COMMANDS } from "./commands.ts";
import { ExitCode } from "./program/exit_codes.ts";
import { help, unknownCommand } from "./help.ts";
import { UsageError } from "./flags/usage_error.ts";
import { checkVariables } from "./flags/variables.ts";
import {
  isSocketChoice,
  SOCKET_CHOICES,
  SOCKETS_VARIABLE,
} from "../net/poll/socket_choice.ts";
import {
  isTlsChoice,
  TLS_CHOICES,
  TLS_VARIABLE,
} from "../net/tls/openssl/tls_choice.ts";

/** Other ways to ask for the same command. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ["-h", "help"],
  ["--help", "help"],
  ["-help", "help"],
  ["--version", "version"],
  ["-version", "version"],
]);

/**
 * Runs the command that `argv` names.
 *
 * @param asked Whose `argv` still begins with the command's name.
 */
export async function run(asked: CommandContext): Promise<ExitCode> {
  // Refusals repeat the words they are about; logs and tickets keep refusals.
  const printError = (text: string) =>
    asked.printError(asFaultOfOurs(withoutTokens(text)));
  const print = (text: string) => asked.print(asFaultOfOurs(text));
  const context = { ...asked, print, printError };
  const [word = "help", ...argv] = context.argv;
  const name = ALIASES.get(word) ?? word;
  try {
    if (name === "help") return await help({ ...context, argv });
    const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (load === undefined) throw unknownCommand(name);
    checkChoices(context);
    const command = await load();
    await checkVariables(
      context.environmentNames?.() ?? [],
      command.flags,
      async () => {
        const loaded = Object.values(COMMANDS).map((load) => load());
        return (await Promise.all(loaded)).map(({ flags }) => flags);
      },
    );
    return await command.run({ ...context, argv });
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const coded = withCode(error.message, error.tunnelCode);
    context.printError(`tunnel: ${coded}\n`);
    return ExitCode.USAGE;
  }
}

/**
 * A user who chooses other sockets or another TLS has a problem already: a typo
 * must not be ignored.
 */
function checkChoices({ environment }: CommandContext): void {
  for (const [variable, isChoice, choices] of CHOICES) {
    const text = environment(variable) ?? "";
    if (text === "" || isChoice(text)) continue;
    throw new UsageError(
      `Cannot use $${variable}: saw "${text}", wanted one of ` +
        choices.join(", "),
    );
  }
}

const CHOICES = [
  [SOCKETS_VARIABLE, isSocketChoice, SOCKET_CHOICES],
  [TLS_VARIABLE, isTlsChoice, TLS_CHOICES],
] as const;
