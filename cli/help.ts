/**
 * `tunnel help`, and the answer to an unknown command.
 *
 * @module
 */

import type { CommandContext } from "./program/command.ts";
import { COMMANDS } from "./commands.ts";
import { EXIT_CODES, ExitCode } from "./program/exit_codes.ts";
import { didYouMean } from "../platform/text/nearest.ts";
import { UsageError } from "./flags/usage_error.ts";

/** The page of one command, or the list of all. */
export async function help(context: CommandContext): Promise<ExitCode> {
  const [name] = context.argv
    .filter((word) => !/^(?:-h|--?help|--all)$/.test(word));
  if (name === undefined || name === "help") {
    context.print(await overview());
    return ExitCode.OK;
  }
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (load === undefined) throw unknownCommand(name);
  context.print((await load()).help(context.argv.includes("--all")));
  return ExitCode.OK;
}

/** What other programs call what is here. */
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

const HELP = "Explain a command: tunnel help COMMAND, --all for every flag";

/** What there is, in the order in which people come to need it. */
export const GROUPS: Readonly<Record<string, readonly string[]>> = {
  Run: ["server", "agent", "proxy", "yurttunnel-agent", "upgrade", "demo"],
  Connect: ["dial", "forward", "bench"],
  See: ["status", "top", "conn", "dashboard", "doctor", "ping", "trace"],
  "Nodes and keys": ["join", "token", "node", "ca", "policy", "state"],
  Services: ["services", "endpoints", "service", "xds", "adsc"],
  Help: [
    ...["help", "explain", "config", "egress-config", "support-bundle"],
    ...["completion", "man", "version"],
  ],
};

async function overview(): Promise<string> {
  const lines = [
    "Usage: tunnel COMMAND [flags]",
    "",
    "Carries connections into networks that cannot be dialed: agents inside",
    "connect to a server outside, which sends connections back through them.",
  ];
  const width = Math.max(...Object.keys(COMMANDS).map(({ length }) => length));
  const line = (name: string, summary: string) =>
    `  ${name.padEnd(width)}  ${summary}`;
  for (const [group, names] of Object.entries(GROUPS)) {
    lines.push("", `${group}:`);
    for (const name of names) {
      lines.push(line(name, (await COMMANDS[name]?.())?.summary ?? HELP));
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
