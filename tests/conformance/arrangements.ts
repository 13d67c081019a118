/**
 * What h2spec is pointed at. It can dial TCP only and has no client
 * certificate, so each arrangement ends in a plain TCP port on loopback.
 *
 * @module
 */

import { Child } from "../peers/child.ts";
import type { Workspace } from "../peers/workspace.ts";

export interface Arrangement {
  readonly port: number;
  stop(): Promise<void>;
}

const SERVER = new URL("./h2spec_server.ts", import.meta.url).pathname;
const CONFIG = new URL("../../deno.json", import.meta.url).pathname;

export const ARRANGEMENTS: Readonly<
  Record<string, (workspace: Workspace) => Promise<Arrangement>>
> = {
  /** The engine alone, set up as a frontend has it. */
  "engine-frontend": (workspace) => startEngine(workspace, "frontend"),
  /** The engine alone, set up as an agent has it. */
  "engine-agent": (workspace) => startEngine(workspace, "agent"),
};

async function startEngine(
  workspace: Workspace,
  role: string,
): Promise<Arrangement> {
  const logFile = workspace.path(`engine-${role}.log`);
  const child = new Child({
    name: `engine as ${role}`,
    command: [
      ...[Deno.execPath(), "run", "--quiet", "--no-prompt"],
      ...["--allow-net=127.0.0.1", `--config=${CONFIG}`, SERVER, role],
    ],
    logFile,
  });
  // The server prints the port that the system has given it.
  const line = await child.untilPrinted(/(?:^|[: ])(\d{4,5})\s*$/m);
  return { port: Number(line[1]), stop: () => child.stop() };
}
