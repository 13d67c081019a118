/**
 * Command lines in a test: what they are read from, and what a command does with
 * one, without a process.
 *
 * @module
 */

import type { FlagSources } from "../../../cli/flags/read_flags.ts";
import type { Command, CommandContext } from "../../../cli/program/command.ts";
import type { ExitCode } from "../../../cli/program/exit_codes.ts";
import { run } from "../../../cli/run.ts";

/** Words alone: there are no variables, and each file says `text`. */
export function words(
  argv: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  text = "",
): FlagSources {
  return {
    argv,
    environment: (name) => environment[name],
    readFile: () => text,
  };
}

/** What a command said, and how it ended. */
export interface Ran {
  readonly code: ExitCode;
  readonly output: string;
  readonly errors: string;
}

/** Runs a command with these words and with what else is given. */
export async function ran(
  run: Command["run"],
  argv: readonly string[],
  machine: Partial<CommandContext> = {},
): Promise<Ran> {
  let [output, errors] = ["", ""];
  const code = await run({
    ...words(argv),
    print: (text) => output += text,
    printError: (text) => errors += text,
    ...machine,
  });
  return { code, output, errors };
}

/** Runs `tunnel …`, which reads the files of this machine. */
export function tunnel(
  argv: readonly string[],
  machine: Partial<CommandContext> = {},
): Promise<Ran> {
  const readFile = (path: string) => Deno.readTextFileSync(path);
  return ran(run, argv, { readFile, ...machine });
}
