/**
 * Two hundred agents whose server is killed and started again: how long until
 * all of them are back, and whether any was turned away.
 *
 * Usage: `deno task lab rejoin`. Ends with `N passed, N failed, N skipped`.
 *
 * @module
 */

import { Tally } from "../../tests/support/watch/tally.ts";
import { RIGHTS, V8_FLAGS } from "../../cli/program/rights.ts";
import { Child, killAllChildren } from "../../tests/support/program/child.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";
import { IdentityServer } from "../../tests/support/rigs/node_stage.ts";
import type { AgentsLine } from "./many_agents.ts";

const AGENTS = 200;
/** How long the server stays away; waits between attempts grow meanwhile. */
const AWAY_MS = [0, 0, 2_000, 5_000, 10_000];
const BAR_MS = 3_000;
/** They may join no faster than a server lets one source. */
const JOIN_TIMEOUT_MS = 120_000;
const BACK_TIMEOUT_MS = 30_000;
const LOOK_MS = 20;

async function main(): Promise<number> {
  const tally = new Tally();
  const workspace = await Workspace.make();
  try {
    await rejoin(workspace, tally);
  } finally {
    await killAllChildren();
  }
  if (tally.failed === 0) await workspace.remove();
  else tally.note(`     logs: ${workspace.folder}`);
  return tally.end();
}

async function rejoin(workspace: Workspace, tally: Tally): Promise<void> {
  const stage = new IdentityServer(workspace);
  await stage.start();
  const token = await stage.createToken(`--uses=${AGENTS}`);
  const agents = startAgents(workspace, stage, token);
  await lineOf(agents, 0, "every-link", JOIN_TIMEOUT_MS);
  for (const awayMs of AWAY_MS) {
    const seen = (await linesOf(agents)).length;
    await stage.child.stop("SIGKILL");
    await lineOf(agents, seen, "none", BACK_TIMEOUT_MS);
    await new Promise((resolve) => setTimeout(resolve, awayMs));
    const startMs = Date.now();
    const server = await stage.start();
    const listeningMs = Date.now();
    const all = await lineOf(agents, seen, "all", BACK_TIMEOUT_MS);
    const each = await lineOf(agents, seen, "every-link", BACK_TIMEOUT_MS);
    const log = await Deno.readTextFile(server.logFile);
    const refused = log.split("\n").filter((line) => /Cannot /.test(line));
    const late = [...all.failures, ...each.failures]
      .filter(([atMs]) => atMs > listeningMs);
    const backMs = all.atMs - listeningMs;
    const line = `${AGENTS} agents back ${backMs} ms after their server ` +
      `listened again (${each.atMs - listeningMs} ms with both links; it was ` +
      `away for ${awayMs} ms and took ${listeningMs - startMs} ms to start), ` +
      `${late.length} attempts failed meanwhile, ${refused.length} refused`;
    const isGood = refused.length === 0 && late.length === 0 &&
      backMs <= BAR_MS;
    if (isGood) tally.pass(line);
    else tally.fail("agents come back within three seconds", line);
    for (const [, reason] of late.slice(0, 3)) tally.note(`     ${reason}`);
    for (const reason of refused.slice(0, 3)) tally.note(`     ${reason}`);
  }
}

function startAgents(
  workspace: Workspace,
  { agentPort }: IdentityServer,
  token: string,
): Child {
  const module = new URL("many_agents.ts", import.meta.url).pathname;
  const config = new URL("../../deno.json", import.meta.url).pathname;
  return new Child({
    name: "agents",
    command: [
      ...[Deno.execPath(), "run", "--quiet", V8_FLAGS, ...RIGHTS.programs],
      ...[`--config=${config}`, module, String(agentPort), String(AGENTS)],
      ...[token, workspace.path("agents")],
    ],
    logFile: workspace.path("agents.log"),
  });
}

async function linesOf(agents: Child): Promise<AgentsLine[]> {
  const text = await Deno.readTextFile(agents.logFile).catch(() => "");
  return text.split("\n").filter((line) => /^\{.*\}$/.test(line))
    .map((line) => JSON.parse(line));
}

async function lineOf(
  agents: Child,
  after: number,
  event: AgentsLine["event"],
  timeoutMs: number,
): Promise<AgentsLine> {
  const deadline = performance.now() + timeoutMs;
  while (true) {
    const lines = (await linesOf(agents)).slice(after);
    const found = lines.findLast((line) => line.event === event);
    if (found !== undefined) return found;
    if (agents.hasEnded || performance.now() > deadline) {
      throw new Error(`agents never "${event}": ${await agents.logTail()}`);
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

if (import.meta.main) Deno.exit(await main());
