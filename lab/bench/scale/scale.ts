// deno-lint-ignore-file no-console -- a command that prints what it measures.
/**
 * What ten thousand agents cost a server: memory, dials, scrapes, how they
 * arrive, how they are lost, and what the loss of a server does to another.
 * Before that: how soon two hundred are back whose server is killed.
 *
 * Usage: `deno task lab bench-ha [--agents N] [--links N]`. Three minutes; agents are
 * of four processes (`light_agents.ts`), the server is the real one with a watch
 * on its event loop. Times of the event loop are processor time, so that a busy
 * machine changes them little.
 *
 * @module
 */

import { parseArgs } from "@std/cli";
import { Tally } from "../../../tests/support/watch/tally.ts";
import {
  endChildrenOnSignals,
  killAllChildren,
} from "../../../tests/support/program/child.ts";
import { Workspace } from "../../../tests/support/program/workspace.ts";
import { grade, quantile } from "../bars.ts";
import { Registry } from "../../../server/routing/registry.ts";
import { FakeLink } from "../../../tests/support/memory/fake_link.ts";
import { ScaleStage } from "./scale_stage.ts";

const BARS = {
  agentKib: 40,
  pickUs: 50,
  turnMs: 50,
  lossMs: 2_000,
  backMs: 3_000,
} as const;

/** Agents of one address whose server goes and comes back. */
const ONE_ADDRESS = 200;

/** How long it stays away; waits between attempts grow meanwhile. */
const AWAY_MS = [0, 2_000, 10_000];

/** A share of the dials at a server that is left alone meanwhile. */
const NEIGHBOUR_DIALS = 100;

async function measure(stage: ScaleStage, tally: Tally): Promise<void> {
  const { agents, links } = stage;
  const loads = Deno.loadavg()[0]!.toFixed(1);
  console.log(`${agents} agents with ${links} links each; load is ${loads}`);
  const picks = measurePicks(agents);
  grade(tally, bar("dial lookup, p99", picks.p99Us, "µs", BARS.pickUs));
  console.log(`     median ${picks.p50Us.toFixed(1)} µs`);
  await comeBack(stage, tally);
  await stage.start();
  await arrive(stage, tally);
  await hold(stage, tally);
  await lose(stage, tally);
  await arriveAgain(stage, tally);
  await loseServer(stage, tally);
}

async function comeBack(stage: ScaleStage, tally: Tally): Promise<void> {
  for await (const back of stage.comeBack(ONE_ADDRESS, AWAY_MS)) {
    const name = `${ONE_ADDRESS} agents back after ${back.awayMs} ms`;
    grade(tally, bar(name, back.tookMs, "ms", BARS.backMs));
    console.log(`     with all links after ${back.allLinksMs} ms`);
    grade(tally, bar("attempts turned away meanwhile", back.failed, "", 0));
    if (back.failed > 0) console.log(`     ${back.reason}`);
  }
}

async function arrive(stage: ScaleStage, tally: Tally): Promise<void> {
  const few = await stage.arrive(10);
  console.log(`     10 agents: ${few}`);
  const before = await stage.settled();
  const dials = await stage.dialTimes();
  console.log(`     dials with 10 agents: ${dials}`);
  const arrival = await stage.arrive(stage.agents);
  console.log(`     ${stage.agents} agents: ${arrival}`);
  grade(tally, turn("longest turn while they arrive", arrival.longestTurnMs));
  const after = await stage.settled();
  const perAgent = (bytes: number) => bytes / stage.agents / 1024;
  const kib = perAgent(after.rssBytes - before.rssBytes);
  const heapKib = perAgent(after.heapBytes - before.heapBytes);
  console.log(
    `     ${kib.toFixed(1)} KiB for each agent, ${
      heapKib.toFixed(1)
    } of them ` +
      "objects of JavaScript",
  );
  grade(tally, bar("memory for each agent", kib, "KiB", BARS.agentKib));
}

async function hold(stage: ScaleStage, tally: Tally): Promise<void> {
  const idle = await stage.idle();
  console.log(
    `     idle: ${idle.cpuPercent.toFixed(0)} % of a core (keepalive)`,
  );
  grade(tally, turn("longest turn while nothing happens", idle.longestTurnMs));
  console.log(`     dials: ${await stage.dialTimes()}`);
  console.log(`     refusals: ${await stage.refusalTimes()}`);
  const scrape = await stage.scrapeTimes();
  console.log(`     scrapes: ${scrape}`);
  grade(
    tally,
    turn("longest turn of scrapes and probes", scrape.longestTurnMs),
  );
}

async function lose(stage: ScaleStage, tally: Tally): Promise<void> {
  const loss = await stage.loseAgents();
  console.log(`     all agents lost: ${loss}`);
  grade(tally, bar("all links lost at once", loss.tookMs, "ms", BARS.lossMs));
  grade(tally, turn("longest turn meanwhile", loss.longestTurnMs));
}

async function arriveAgain(stage: ScaleStage, tally: Tally): Promise<void> {
  await stage.startSecond();
  const arrival = await stage.arrive(stage.agents, 2);
  console.log(`     at two servers: ${arrival}`);
  grade(tally, turn("longest turn of either", arrival.longestTurnMs));
}

async function loseServer(stage: ScaleStage, tally: Tally): Promise<void> {
  const loss = await stage.loseServer(NEIGHBOUR_DIALS);
  console.log(`     a server killed: ${loss}`);
  const name = "failed dials at the other server while one is killed";
  grade(tally, bar(name, loss.failed, "", 0));
  grade(tally, bar("slowest dial there", loss.slowestMs, "ms", BARS.lossMs));
}

function bar(
  name: string,
  seen: number,
  unit: "ms" | "µs" | "KiB" | "",
  most: number,
) {
  return { name, seen, unit, most };
}

function turn(name: string, seen: number) {
  return bar(name, seen, "ms", BARS.turnMs);
}

const PICKS = 200_000;

/** Before that the code is not compiled. */
const WARM_UP = 20_000;

/** Chooses by name, by address and among all, in turn. */
function measurePicks(
  agents: number,
): { readonly p50Us: number; readonly p99Us: number } {
  const registry = new Registry({
    strategies: ["destHost", "cidr", "default"],
    clock: performance,
    random: Math.random,
  });
  for (let at = 0; at < agents; at++) {
    const net = `10.${at >> 8}.${at & 255}`;
    registry.add(
      new FakeLink(`agent-${at}`, {
        host: [`node-${at}`],
        ipv4: [`${net}.1`],
        cidr: [`${net}.0/24`],
      }),
    );
  }
  const times: number[] = [];
  for (let pick = 0; pick < PICKS; pick++) {
    const at = Math.floor(Math.random() * agents);
    const net = `10.${at >> 8}.${at & 255}`;
    const [address, node] = [
      [`node-${at}:80`],
      [`${net}.77:80`],
      ["elsewhere:80"],
      ["127.0.0.1:80", `node-${at}`],
    ][pick % 4]!;
    const startMs = performance.now();
    registry.pick({ protocol: "tcp", address: address! }, node);
    const tookMs = performance.now() - startMs;
    if (pick >= WARM_UP) times.push(tookMs * 1000);
  }
  return { p50Us: quantile(times, 0.5), p99Us: quantile(times, 0.99) };
}

if (import.meta.main) {
  const given = parseArgs(Deno.args, {
    string: ["agents", "links"],
    default: { agents: "10000", links: "2" },
  });
  const tally = new Tally();
  const workspace = await Workspace.make();
  endChildrenOnSignals(() => workspace.remove());
  try {
    await measure(
      new ScaleStage(workspace, Number(given.agents), Number(given.links)),
      tally,
    );
  } finally {
    await killAllChildren();
    await workspace.remove();
  }
  Deno.exit(tally.end());
}
