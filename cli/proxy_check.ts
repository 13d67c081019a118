/**
 * `tunnel proxy --check`: what the sources say, and what is wrong with it.
 *
 * @module
 */

import type { NodeProxyOptions } from "../agent/proxy/node_proxy.ts";
import { checkSources } from "../agent/proxy/source_check.ts";
import { printable } from "../platform/log/printable.ts";
import { systemTimers } from "../platform/time/system_timers.ts";
import type { CommandContext } from "./command.ts";
import { ExitCode } from "./exit_codes.ts";
import { KEEPS_NOTHING } from "./flags/discovery_client_flags.ts";

/** Longest line about one thing. */
const LINE_LENGTH_MAX = 500;

/** A copy of what was once said would hide that nothing is said now. */
export const CHECKED_VALUES = {
  "catalog-copies": KEEPS_NOTHING,
  "discovery-state": KEEPS_NOTHING,
} as const;

/** Prints a line for each source and each problem. */
export async function printCheck(
  options: Pick<NodeProxyOptions, "sources" | "addresses" | "addressFile">,
  { print }: Pick<CommandContext, "print">,
): Promise<ExitCode> {
  const { sources, problems, notes } = await checkSources(
    options,
    systemTimers,
  );
  const lines = [
    ...sources.map(({ name, services, endpoints }) =>
      `${name}: ${counted(services, "service")}, ${
        counted(endpoints, "endpoint")
      }`
    ),
    ...notes.map((note) => `note: ${note}`),
    ...problems.map((problem) => `wrong: ${problem}`),
    problems.length === 0 ? "ok" : counted(problems.length, "problem"),
  ];
  print(lines.map((line) => `${printable(line, LINE_LENGTH_MAX)}\n`).join(""));
  return problems.length === 0 ? ExitCode.OK : ExitCode.FAILURE;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
