/**
 * Links whose other end is frozen, or cut off in one direction, a hundred of
 * them: how long until they are found.
 *
 * All of one kind run beside each other: each is one run, found by itself.
 *
 * @module
 */

import type { Tally } from "../../tests/support/watch/tally.ts";
import type { Child } from "../../tests/support/program/child.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import { ServerProcess } from "../../tests/support/rigs/server_process.ts";
import { grade } from "./bars.ts";
import { crowdLine, startCrowd } from "./crowd.ts";
import { Namespace } from "./namespace.ts";

/** Of each kind. */
const RUNS = 25;

/** Each frozen agent is a process of its own. */
const STARTED_AT_ONCE = 5;

/** What an agent's `--keepalive-time` of 4 s promises. */
const BOUND_MS = 10_000;

/** For the look at it, and a busy machine. */
const SLACK_MS = 500;

const TIMEOUT_MS = 60_000;

/** See the module description. */
export async function measureHalfOpen(
  workspace: Workspace,
  tally: Tally,
): Promise<void> {
  await frozenAgents(workspace, tally);
  await frozenServer(workspace, tally);
  if (!await Namespace.isPossible()) {
    return tally.skip("links cut in one direction", "namespaces need root");
  }
  await cutLinks(workspace, tally, "from the agents");
  await cutLinks(workspace, tally, "from the server");
}

async function frozenAgents(
  workspace: Workspace,
  tally: Tally,
): Promise<void> {
  const server = new ServerProcess(workspace, "frozen-agents");
  await server.start();
  const agents: Child[] = [];
  for (let at = 0; at < RUNS; at += STARTED_AT_ONCE) {
    for (let one = at; one < at + STARTED_AT_ONCE; one++) {
      const servers = [server.address];
      const crowd = { first: one, count: 1, links: 1, servers };
      agents.push(startCrowd(workspace, crowd));
    }
    await Promise.all(agents.slice(at).map((agent) => untilLinks(agent, 1)));
  }
  const startMs = Date.now();
  for (const agent of agents) agent.signal("SIGSTOP");
  const found = await timesInLog(server.child, /agent gone/, startMs, RUNS);
  report(tally, "frozen agents found by their server", found);
  await Promise.all(agents.map((agent) => agent.stop("SIGKILL")));
  await server.stop("SIGKILL");
}

async function frozenServer(
  workspace: Workspace,
  tally: Tally,
): Promise<void> {
  const server = new ServerProcess(workspace, "frozen-server");
  await server.start();
  const servers = [server.address];
  const crowd = startCrowd(workspace, {
    ...{ first: 0, count: RUNS, links: 1, servers },
  });
  await untilLinks(crowd, RUNS);
  const startMs = Date.now();
  server.child.signal("SIGSTOP");
  report(
    tally,
    "a frozen server found by its agents",
    await timesOfLosses(crowd, startMs),
  );
  await crowd.stop("SIGKILL");
  await server.stop("SIGKILL");
}

async function cutLinks(
  workspace: Workspace,
  tally: Tally,
  direction: "from the agents" | "from the server",
): Promise<void> {
  await using namespace = await Namespace.make();
  const server = new ServerProcess(workspace, "cut", [
    `--agent-bind-address=${namespace.outside}`,
  ]);
  await server.start();
  const crowd = startCrowd(workspace, {
    ...{ first: 0, count: RUNS, links: 1, prefix: namespace.prefix },
    servers: [`${namespace.outside}:${server.agentPort}`],
  });
  await untilLinks(crowd, RUNS);
  const startMs = Date.now();
  await namespace.cut(direction === "from the agents" ? "outwards" : "inwards");
  // Whoever receives nothing finds it, and the other end may not be told.
  const found = direction === "from the agents"
    ? await timesInLog(server.child, /agent gone/, startMs, RUNS)
    : await timesOfLosses(crowd, startMs);
  report(tally, `links cut ${direction}, found by who hears nothing`, found);
  await crowd.stop("SIGKILL");
  await server.stop("SIGKILL");
}

function report(tally: Tally, what: string, found: readonly number[]): void {
  const late = found.filter((ms) => ms > BOUND_MS + SLACK_MS).length;
  const missed = RUNS - found.length + late;
  grade(tally, {
    name: `${what}, of ${RUNS} not within ${BOUND_MS / 1000} s`,
    ...{ seen: missed, unit: "", most: 0 },
  });
  const seconds = (ms: number) => (ms / 1000).toFixed(1);
  tally.note(
    `     between ${seconds(Math.min(...found))} and ` +
      `${seconds(Math.max(...found))} s`,
  );
}

/** When lines were written, by the log's own times. */
async function timesInLog(
  { logFile }: Child,
  words: RegExp,
  startMs: number,
  count: number,
): Promise<number[]> {
  const deadlineMs = Date.now() + TIMEOUT_MS;
  for (;;) {
    const log = await Deno.readTextFile(logFile);
    const times = log.split("\n").filter((line) => words.test(line))
      .map((line) => /\d{4}-\d\d-\d\dT[\d:.]+Z/.exec(line)?.[0] ?? "")
      .map((time) => Date.parse(time) - startMs);
    if (times.length >= count || Date.now() > deadlineMs) {
      return times.slice(0, count);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** When links were lost, as the agents said it. */
async function timesOfLosses(crowd: Child, startMs: number): Promise<number[]> {
  const deadlineMs = Date.now() + TIMEOUT_MS;
  for (;;) {
    const log = await Deno.readTextFile(crowd.logFile);
    const lines = log.split("\n").filter((line) => /^\{.*\}$/.test(line))
      .map((line): { atMs: number; links: number } => JSON.parse(line))
      .filter(({ atMs }) => atMs >= startMs);
    let left = RUNS;
    const times: number[] = [];
    for (const { atMs, links } of lines) {
      for (; left > links; left--) times.push(atMs - startMs);
    }
    if (times.length >= RUNS || Date.now() > deadlineMs) return times;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function untilLinks(crowd: Child, links: number): Promise<void> {
  const deadlineMs = Date.now() + TIMEOUT_MS;
  while ((await crowdLine(crowd))?.links !== links) {
    if (crowd.hasEnded || Date.now() > deadlineMs) {
      throw new Error(`not ${links} links: ${await crowd.logTail()}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
