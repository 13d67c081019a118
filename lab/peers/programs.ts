/**
 * Programs of others that are run to their end, or that stand at the end of a
 * tunnel.
 *
 * @module
 */

import { Child } from "../../tests/support/program/child.ts";
import { findPeer } from "../../tests/support/program/peers.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";

/** What a program is given beside its words. */
export interface ProgramOptions {
  /** Its standard input; none unless given. */
  readonly input?: string;
  readonly cwd?: string;
  readonly env?: Record<string, string>;
}

/**
 * Runs a program to its end.
 *
 * @returns What it printed.
 * @throws {Error} What it said, when it ends with anything but 0.
 */
export async function mustEnd(
  command: readonly string[],
  { input, ...place }: ProgramOptions = {},
): Promise<string> {
  const [program = "", ...args] = command;
  const child = new Deno.Command(program, {
    ...{ args, ...place, stdout: "piped", stderr: "piped" },
    stdin: input === undefined ? "null" : "piped",
  }).spawn();
  const fed = input === undefined
    ? undefined
    : new Blob([input]).stream().pipeTo(child.stdin);
  const { code, stdout, stderr } = await child.output();
  await fed;
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes).trim();
  if (code === 0) return new TextDecoder().decode(stdout);
  const why = [text(stderr), text(stdout)].filter((each) => each !== "");
  throw new Error(
    `${command.join(" ")} ended with ${code}: ${why.join("\n")}`,
  );
}

/** What answers loadgen's clients. @param prefix Such as of a namespace. */
export async function startTarget(
  workspace: Workspace,
  address: string,
  prefix: readonly string[] = [],
): Promise<Child> {
  return new Child({
    name: "target",
    command: [...prefix, await findPeer("loadgen"), "target", address],
    logFile: workspace.path("target.log"),
  });
}
