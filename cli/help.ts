/**
 * `tunnel help`, and the answer to an unknown command.
 *
 * @module
 */

import type { CommandContext } from "./program/command.ts";
import { COMMANDS } from "./commands.ts";
import { EXIT_CODES, ExitCode } from "./program/exit_codes.ts";
import { nearest } from "../platform/text/nearest.ts";
import { UsageError } from "./flags/usage_error.ts";

/** The page of one command, or the list of all. */
export async function help(context: CommandContext): Promise<ExitCode> {
  const [name] = context.argv.filter((word) => !/^(?:-h|--?help)$/.test(word));
  if (name === undefined || name === "help") {
    context.print(await overview());
    return ExitCode.OK;
  }
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (load === undefined) throw unknownCommand(name);
  context.print((await load()).help());
  return ExitCode.OK;
}

/** Names what might have been meant. */
export function unknownCommand(name: string): UsageError {
  const near = nearest(name, [...Object.keys(COMMANDS), "help"]);
  const hint = near === undefined ? "" : `; did you mean ${near}?`;
  return new UsageError(
    `Unknown command "${name}"${hint} (tunnel help lists all)`,
    "TUN108",
  );
}

async function overview(): Promise<string> {
  const lines = [
    "Usage: tunnel COMMAND [flags]",
    "",
    "Carries connections into networks that cannot be dialed: agents inside",
    "connect to a server outside, which sends connections back through them.",
    "",
    "Commands:",
  ];
  const width = Math.max(...Object.keys(COMMANDS).map(({ length }) => length));
  const line = (name: string, summary: string) =>
    `  ${name.padEnd(width)}  ${summary}`;
  for (const load of Object.values(COMMANDS)) {
    const { name, summary, isHidden } = await load();
    if (!isHidden) lines.push(line(name, summary));
  }
  lines.push(
    line("help", "Explain a command: tunnel help COMMAND"),
    "",
    "Flags may stand in a file (--config tunnel.yaml) and in the environment",
    "(TUNNEL_SERVER_PORT for --server-port); the command line wins. One dash",
    "and underscores (-server_port) do as well. --version prints the version.",
    "",
    "Exit codes:",
    ...EXIT_CODES.map(([code, , meaning]) => `  ${code}  ${meaning}`),
  );
  return lines.join("\n") + "\n";
}
