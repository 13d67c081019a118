/**
 * From the words after `tunnel` to an exit code; `tunnel help`, and the answer
 * to an unknown command. Unknown variables with our prefix are refused: a typo
 * in a name is an error, as it is on a command line or in a file.
 *
 * @module
 */

import { withoutTokens } from "../proto/identity/join_token.ts";
import { withCode } from "../proto/codes/codes.ts";
import { asFaultOfOurs } from "../platform/errors/missing_right.ts";
import type { CommandContext } from "./program/command.ts";
import { allCommands, COMMANDS, GROUPS } from "./commands.ts";
import { CommandFailure, EXIT_CODES, ExitCode } from "./program/exit_codes.ts";
import { UsageError } from "./flags/usage_error.ts";
import { SOCKETS, TLS } from "../net/libc/choices.ts";
import { didYouMean, editDistance } from "../platform/text/nearest.ts";
import type { FlagTable } from "./flags/flag.ts";
import { environmentName } from "./flags/read_flags.ts";

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
      async () => (await allCommands()).map(({ flags }) => flags),
    );
    return await command.run({ ...context, argv });
  } catch (error) {
    const isUsage = error instanceof UsageError;
    if (!isUsage && !(error instanceof CommandFailure)) throw error;
    const coded = withCode(error.message, error.tunnelCode);
    context.printError(`tunnel: ${coded}\n`);
    return isUsage ? ExitCode.USAGE : error.code;
  }
}

/**
 * A user who chooses other sockets or another TLS has a problem already: a typo
 * must not be ignored.
 */
function checkChoices({ environment }: CommandContext): void {
  for (const { variable, words } of [SOCKETS, TLS]) {
    const text = environment(variable) ?? "";
    if (text === "" || (words as readonly string[]).includes(text)) continue;
    throw new UsageError(
      `Cannot use $${variable}: saw "${text}", wanted one of ` +
        words.join(", "),
    );
  }
}

/**
 * A name that differs more is another program's: cloudflared's have the same
 * prefix.
 */
const SLIPS_MAX = 2;

/** Only `scripts/launcher.ts` reads it. */
const CACHE_VARIABLE = "TUNNEL_CACHE_DIR";

/** What Kubernetes sets beside a Service whose name begins with `tunnel`. */
const SERVICE_LINK =
  /_SERVICE_(?:HOST|PORT(?:_\w+)?)$|_PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?)?$/;

/**
 * @param names Of all variables.
 * @param table Of the command that is to run.
 * @param others Tables of all commands, loaded when something looks odd: one
 *   environment may serve several.
 * @throws {UsageError} For the first that must be a mistake.
 */
export async function checkVariables(
  names: Iterable<string>,
  table: FlagTable,
  others: () => Promise<readonly FlagTable[]>,
): Promise<void> {
  const own = namesOf(table);
  for (const name of names) {
    if (!name.startsWith("TUNNEL_") || own.has(name)) continue;
    const meant = [...own].find((known) => isSlip(name, known));
    if (meant === undefined || SERVICE_LINK.test(name)) continue;
    const all = (await others()).map(namesOf);
    if (all.some((known) => known.has(name))) continue;
    throw new UsageError(
      `Unknown variable $${name}; did you mean $${meant}? (unset it if it ` +
        "belongs to another program)",
    );
  }
}

function namesOf(table: FlagTable): ReadonlySet<string> {
  const names = Object.entries(table).flatMap((
    [flag, { environment = [] }],
  ) => [environmentName(flag), ...environment]);
  return new Set([...names, SOCKETS.variable, TLS.variable, CACHE_VARIABLE]);
}

function isSlip(seen: string, known: string): boolean {
  return Math.abs(seen.length - known.length) <= SLIPS_MAX &&
    editDistance(seen, known) <= SLIPS_MAX;
}

/** The page of one command, or the list of all. */
export async function help(context: CommandContext): Promise<ExitCode> {
  const [name] = context.argv
    .filter((word) => !/^(?:-h|--?help|--all)$/.test(word));
  if (name === undefined || name === "help") {
    context.print(overview());
    return ExitCode.OK;
  }
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (load === undefined) throw unknownCommand(name);
  context.print((await load()).help(context.argv.includes("--all")));
  return ExitCode.OK;
}

/** Other programs' names for our commands. */
const WORDS: Readonly<Record<string, string>> = {
  connect: "dial",
  expose: "service register",
  get: "node list",
  health: "status",
  info: "status",
  login: "join",
  logs: "conn list, or tunnel explain",
  ls: "node list",
  netcheck: "doctor",
  nodes: "node list",
  peers: "node list",
  ps: "conn list",
  run: "server, or tunnel agent",
  ssh: "dial (as ProxyCommand)",
  start: "server, or tunnel agent",
  up: "agent",
};

/** Names what might have been meant. */
export function unknownCommand(name: string): UsageError {
  const word = Object.hasOwn(WORDS, name) ? WORDS[name] : undefined;
  const hint = /^-+v$/.test(name)
    ? "; for the version, tunnel version; for more of the log, --v=4 behind a command"
    : word === undefined
    ? didYouMean(name, [...Object.keys(COMMANDS), "help"])
    : `; did you mean ${word}?`;
  return new UsageError(
    `Unknown command "${name}"${hint} (tunnel help lists all)`,
  );
}

function overview(): string {
  const lines = [
    "Usage: tunnel COMMAND [flags]",
    "",
    "Carries connections into networks that cannot be dialed: agents inside",
    "connect to a server outside, which sends connections back through them.",
  ];
  const width = Math.max(...Object.keys(COMMANDS).map(({ length }) => length));
  for (const [group, summaries] of Object.entries(GROUPS)) {
    lines.push("", `${group}:`);
    for (const [name, summary] of Object.entries(summaries)) {
      lines.push(`  ${name.padEnd(width)}  ${summary}`);
    }
  }
  lines.push(
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
