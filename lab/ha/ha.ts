// deno-lint-ignore-file no-console -- a command that prints what it measures.
/**
 * The bars of high availability, each with what was seen.
 *
 * Usage: `deno task lab ha [BAR…]`: `kills`, `rolling`, `server-restart`,
 * `agent-restart`, `crowd`, `half-open`; all of them unless given. Five minutes. Real processes on
 * loopback, as they are shipped; one-way cuts in network namespaces of their
 * own, which need root and are skipped without.
 *
 * @module
 */

import { Tally } from "../../tests/support/watch/tally.ts";
import {
  endChildrenOnSignals,
  killAllChildren,
} from "../../tests/support/program/child.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";
import { measureAgentRestart } from "./agent_restart.ts";
import { measureCrowd } from "./crowd_return.ts";
import { measureHalfOpen } from "./half_open.ts";
import { HaStage } from "./ha_stage.ts";
import { measureKills } from "./kills.ts";
import { measureRolling } from "./rolling.ts";
import { measureServerRestart } from "./server_restart.ts";

type Measure = (workspace: Workspace, tally: Tally) => Promise<void>;

/** Those of three servers and twenty agents. */
const STAGED = ["kills", "rolling", "server-restart", "agent-restart"];

const ALONE: Readonly<Record<string, Measure>> = {
  crowd: measureCrowd,
  "half-open": measureHalfOpen,
};

if (import.meta.main) {
  const asked = new Set(Deno.args);
  const isAsked = (name: string) => asked.size === 0 || asked.has(name);
  const tally = new Tally();
  const workspace = await Workspace.make();
  endChildrenOnSignals(() => workspace.remove());
  console.log(`load is ${Deno.loadavg()[0]!.toFixed(1)}`);
  try {
    if (STAGED.some(isAsked)) await measureStaged(workspace, tally, isAsked);
    await killAllChildren();
    for (const [name, measure] of Object.entries(ALONE)) {
      if (!isAsked(name)) continue;
      await measure(workspace, tally)
        .catch((error) => tally.fail(name, error));
      await killAllChildren();
    }
  } finally {
    await killAllChildren();
    if (tally.failed === 0) await workspace.remove();
    else console.log(`logs: ${workspace.folder}`);
  }
  Deno.exit(tally.end());
}

async function measureStaged(
  workspace: Workspace,
  tally: Tally,
  isAsked: (name: string) => boolean,
): Promise<void> {
  const stage = new HaStage(workspace);
  try {
    await stage.start();
    if (isAsked("kills")) await measureKills(stage, tally);
    if (isAsked("rolling")) await measureRolling(stage, tally);
    if (isAsked("server-restart")) await measureServerRestart(stage, tally);
    if (isAsked("agent-restart")) await measureAgentRestart(stage, tally);
  } catch (error) {
    tally.fail("three servers and twenty agents", error);
  } finally {
    stage.close();
  }
}
