/**
 * Light agents as processes, and what they last said.
 *
 * @module
 */

import { V8_FLAGS } from "../../../cli/program/rights.ts";
import { Child } from "../../../tests/support/program/child.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import type { CrowdLine } from "./light_agents.ts";

/** Which agents, and where they go. */
export interface CrowdOptions {
  readonly first: number;
  readonly count: number;
  readonly links: number;
  /** `HOST:PORT` of each. */
  readonly servers: readonly string[];
  /** Words before the command, such as `ip netns exec NAME`. */
  readonly prefix?: readonly string[];
}

/** Starts one process of light agents. */
export function startCrowd(
  workspace: Workspace,
  { first, count, links, servers, prefix = [] }: CrowdOptions,
): Child {
  const { ca, agent } = workspace.certificates;
  return new Child({
    name: `agents from ${first} on`,
    command: [
      ...prefix,
      ...haProgram("light_agents.ts"),
      ...[ca, agent.cert, agent.key],
      ...[first, count, links].map(String),
      ...servers,
    ],
    logFile: workspace.path(`crowd-${first}.log`),
  });
}

/** What it printed last. */
export async function crowdLine(crowd: Child): Promise<CrowdLine | undefined> {
  const text = await Deno.readTextFile(crowd.logFile).catch(() => "");
  const line = text.split("\n").findLast((one) => /^\{.*\}$/.test(one));
  return line === undefined ? undefined : JSON.parse(line);
}

/** The command line of a program of this folder. */
export function haProgram(file: string): string[] {
  const config = new URL("../../../deno.json", import.meta.url).pathname;
  const module = new URL(file, import.meta.url).pathname;
  return [
    ...[Deno.execPath(), "run", "--quiet", "--no-prompt", V8_FLAGS],
    // All of it: `/proc` is open to nobody with less.
    ...["--allow-all", "--unstable-net", `--config=${config}`, module],
  ];
}
