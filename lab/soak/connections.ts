// deno-lint-ignore-file no-console -- a part of a command that prints its results.
/**
 * Ten thousand connections that wait and a thousand that come and go, on a real
 * server and a real agent: neither memory nor descriptors may grow.
 *
 * @module
 */

import { progressBar, ProgressLine } from "../../cli/program/progress.ts";
import type { Tally } from "../../tests/support/watch/tally.ts";
import {
  Child,
  endChildrenOnSignals,
  killAllChildren,
} from "../../tests/support/program/child.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { startAgent, startServer } from "../../tests/support/program/tunnel.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";
import {
  type Holding,
  holdingOf,
} from "../../tests/support/program/processes.ts";
import { grade, gradeMemory, type Sample, WARM_UP_SHARE } from "./growth.ts";
import { sleep } from "../../tests/support/watch/event_loop.ts";
import { startTarget } from "../peers/programs.ts";

const SAMPLE_EVERY_MS = 2_000;

/** How long the idle ones may take to be opened. */
const OPEN_TIMEOUT_MS = 120_000;

/** What may be more at the end than behind the warm-up, and is no growth. */
const DESCRIPTOR_SLACK = 20;

/** Both programs. */
type End = "server" | "agent";
const ENDS = ["server", "agent"] as const;

/** How much, and for how long. */
export interface ConnectionsOptions {
  readonly minutes: number;
  readonly idle: number;
  readonly flapping: number;
}

interface Round extends Record<End, Holding> {
  readonly atMinutes: number;
}

/** Runs it and says whether anything grew. */
export async function soakConnections(
  options: ConnectionsOptions,
  tally: Tally,
): Promise<void> {
  const workspace = await Workspace.make();
  endChildrenOnSignals(() => workspace.remove());
  try {
    await soak(workspace, options, tally);
  } finally {
    await killAllChildren();
    if (tally.failed === 0) await workspace.remove();
    else console.log(`logs: ${workspace.folder}`);
  }
}

async function soak(
  workspace: Workspace,
  { minutes, idle, flapping }: ConnectionsOptions,
  tally: Tally,
): Promise<void> {
  const port = freePort();
  await startTarget(workspace, `0.0.0.0:${port}`);
  const server = await startServer(workspace, {
    maker: "ours",
    mode: "http-connect",
    transport: "uds",
  });
  const agent = await startAgent(workspace, server, "ours");
  const { frontend } = server;
  if (frontend.transport !== "uds") throw new TypeError("wanted a socket");
  const callers = startCallers(workspace, [
    ...[frontend.path, String(port), String(idle), String(flapping)],
  ]);
  await untilIdle(callers, idle);
  const pids = { server: server.child.pid, agent: agent.child.pid };
  const rounds = await watch(pids, minutes);
  const counts = await lastCounts(callers);
  console.log(`     callers: ${JSON.stringify(counts)}`);
  if (counts.errors === 0 && counts.idle === idle && counts.rounds > 0) {
    tally.pass(`${counts.rounds} connections came and went, ${idle} stayed`);
  } else tally.fail("connections come and go", JSON.stringify(counts));
  assess(rounds, minutes, tally);
}

function startCallers(workspace: Workspace, args: string[]): Child {
  const module = new URL("callers.ts", import.meta.url).pathname;
  const config = new URL("../../deno.json", import.meta.url).pathname;
  return new Child({
    name: "callers",
    command: [
      ...[Deno.execPath(), "run", "--quiet", `--config=${config}`],
      ...["--allow-net", "--allow-read", "--allow-write", module, ...args],
    ],
    logFile: workspace.path("callers.log"),
  });
}

/** What the callers print. */
interface Counts {
  readonly idle: number;
  readonly rounds: number;
  readonly errors: number;
  readonly firstError: string;
}

const WOULD_BLOCK: Counts = { idle: 0, rounds: 0, errors: 0, firstError: "" };

async function lastCounts(callers: Child): Promise<Counts> {
  const lines = (await callers.logTail()).trim().split("\n");
  const last = lines.findLast((line) => line.startsWith("{"));
  return last === undefined ? WOULD_BLOCK : JSON.parse(last);
}

async function untilIdle(callers: Child, idle: number): Promise<void> {
  const endMs = performance.now() + OPEN_TIMEOUT_MS;
  while ((await lastCounts(callers)).idle !== idle) {
    if (callers.hasEnded || performance.now() > endMs) {
      throw new Error(`Never had ${idle}: ${await callers.logTail()}`);
    }
    await sleep(SAMPLE_EVERY_MS);
  }
}

async function watch(
  pids: Record<End, number>,
  minutes: number,
): Promise<Round[]> {
  const rounds: Round[] = [];
  const line = new ProgressLine();
  const startMs = performance.now();
  for (;;) {
    const atMinutes = (performance.now() - startMs) / 60_000;
    if (atMinutes >= minutes) {
      line.clear();
      return rounds;
    }
    const bar = progressBar(atMinutes / minutes, 20);
    line.show(`  ${bar} ${atMinutes.toFixed(1)} of ${minutes} minutes`);
    const [server, agent] = ENDS.map((end) => holdingOf(pids[end]));
    rounds.push({ atMinutes, server: server!, agent: agent! });
    await sleep(SAMPLE_EVERY_MS);
  }
}

function assess(
  rounds: readonly Round[],
  minutes: number,
  tally: Tally,
): void {
  const warm = rounds.filter(({ atMinutes }) =>
    atMinutes >= minutes * WARM_UP_SHARE
  );
  const measured = minutes * (1 - WARM_UP_SHARE);
  for (const end of ENDS) {
    const memory = series(warm, (round) => round[end].memoryKib);
    gradeMemory(`the ${end}`, memory, measured, tally);
    const descriptors = series(warm, (round) => round[end].descriptors);
    const bar = DESCRIPTOR_SLACK / measured;
    grade(`descriptors of the ${end}`, descriptors, bar, tally);
  }
}

function series(
  rounds: readonly Round[],
  value: (round: Round) => number,
): Sample[] {
  return rounds.map((round) => ({
    atMinutes: round.atMinutes,
    value: value(round),
  }));
}
