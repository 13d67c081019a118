// deno-lint-ignore-file no-console -- a part of a command that prints its results.
/**
 * A server and two agents under mixed load for a long time: short connections,
 * bulk, clients that break off, an agent that is killed again and again. After
 * every round all connections must be gone, and at the end no more memory and
 * no more descriptors may be held than after the first round.
 *
 * @module
 */

import { connectThrough, writeAll } from "../interop/connect_client.ts";
import type { Tally } from "../../tests/support/watch/tally.ts";
import {
  Child,
  endChildrenOnSignals,
  killAllChildren,
} from "../../tests/support/program/child.ts";
import { findPeer } from "../peers/peers.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import {
  type Maker,
  type RunningAgent,
  type RunningServer,
  startAgent,
  startServer,
} from "../../tests/support/program/tunnel.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";
import { type Holding, holding } from "./holding.ts";
import { sleep } from "../../tests/support/watch/event_loop.ts";

const BROKEN_OFF = 200;
const SETTLE_TIMEOUT_MS = 30_000;
const POLL_MS = 100;

/** What is allowed on top of the first round, for caches and fragments. */
const MEMORY_GROWTH_MAX = 1.25;
const MEMORY_SLACK_KIB = 32 * 1024;
const DESCRIPTOR_SLACK = 8;

const SERVER_GAUGE =
  "konnectivity_network_proxy_server_established_connections";
const AGENT_GAUGE =
  "konnectivity_network_proxy_agent_open_endpoint_connections";

/** Everything that runs during the soak. */
interface Stage {
  readonly maker: Maker;
  readonly workspace: Workspace;
  readonly server: RunningServer;
  /** Lives from the beginning to the end. */
  readonly steady: RunningAgent;
  readonly targetAddress: string;
  readonly loadgen: string;
}

type Holdings = Readonly<Record<"server" | "agent", Holding>>;

async function playRound(stage: Stage): Promise<void> {
  await load(stage, ["-mode=conn", "-n=16", "-d=4s"]);
  await load(stage, ["-mode=rr", "-n=64", "-d=3s"]);
  await load(stage, ["-mode=down", "-n=4", "-gb=0.3"]);
  await load(stage, ["-mode=up", "-n=4", "-gb=0.3"]);
  await breakOff(stage);
  await killAnAgent(stage);
}

/** @throws {Error} When a connection had an error, unless that is expected. */
async function load(
  stage: Stage,
  flags: readonly string[],
  mayFail = false,
): Promise<void> {
  const { frontend } = stage.server;
  if (frontend.transport !== "uds") throw new TypeError("wanted a socket");
  const child = new Child({
    name: "load generator",
    command: [
      stage.loadgen,
      ...flags,
      `-via=unix:${frontend.path}`,
      `-to=${stage.targetAddress}`,
    ],
    logFile: stage.workspace.path("loadgen.log"),
  });
  await child.ended;
  const printed = await child.logTail();
  if (!mayFail && !printed.includes('"errs":0,')) {
    throw new Error(`${flags.join(" ")}: ${printed}`);
  }
}

/** Clients that ask for much, read a little and are gone. */
async function breakOff(stage: Stage): Promise<void> {
  const { frontend } = stage.server;
  if (frontend.transport !== "uds") throw new TypeError("wanted a socket");
  const ask = new Uint8Array(9);
  ask[0] = "D".charCodeAt(0);
  new DataView(ask.buffer).setBigUint64(1, 1n << 30n);
  const one = async () => {
    const conn = await Deno.connect({ transport: "unix", path: frontend.path });
    try {
      await connectThrough(conn, stage.targetAddress);
      await writeAll(conn, ask);
      await conn.read(new Uint8Array(1000));
    } finally {
      conn.close();
    }
  };
  for (let done = 0; done < BROKEN_OFF; done += 20) {
    await Promise.all(Array.from({ length: 20 }, one));
  }
}

/** Under load, so that connections and dials are lost with it. */
async function killAnAgent(stage: Stage): Promise<void> {
  const doomed = await startAgent(stage.workspace, stage.server, stage.maker);
  const bulk = load(stage, ["-mode=down", "-n=16", "-gb=0.6"], true);
  const dials = load(stage, ["-mode=conn", "-n=8", "-d=2s"], true);
  await sleep(1_000);
  await doomed.child.stop("SIGKILL");
  await Promise.all([bulk, dials]);
}

/** Waits until no connection is open any more, at either end. */
async function untilQuiet(stage: Stage): Promise<void> {
  const deadline = Date.now() + SETTLE_TIMEOUT_MS;
  for (;;) {
    const server = await gauge(stage.server.healthUrl, SERVER_GAUGE);
    const agent = await gauge(stage.steady.healthUrl, AGENT_GAUGE);
    if (server === 0 && agent === 0) return;
    if (Date.now() > deadline) {
      throw new Error(
        `after ${SETTLE_TIMEOUT_MS} ms the server has ${server} and the agent ${agent}`,
      );
    }
    await sleep(POLL_MS);
  }
}

/** A metric that is absent has not been used. */
async function gauge(healthUrl: string, name: string): Promise<number> {
  const text = await (await fetch(`${healthUrl}/metrics`)).text();
  const line = new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "m").exec(text);
  return line === null ? 0 : Number(line[1]);
}

async function holdings(stage: Stage): Promise<Holdings> {
  return {
    server: await holding(stage.server.child.pid),
    agent: await holding(stage.steady.child.pid),
  };
}

function assess(first: Holdings, last: Holdings, tally: Tally): void {
  for (const end of ["server", "agent"] as const) {
    const [before, after] = [first[end], last[end]];
    const memoryMax = before.memoryKib * MEMORY_GROWTH_MAX + MEMORY_SLACK_KIB;
    const memory = `memory of the ${end}: ${before.memoryKib} KiB after the ` +
      `first round, ${after.memoryKib} after the last`;
    if (after.memoryKib <= memoryMax) tally.pass(memory);
    else tally.fail(memory, `at most ${Math.round(memoryMax)} were wanted`);
    const descriptors = `descriptors of the ${end}: ${before.descriptors} ` +
      `after the first round, ${after.descriptors} after the last`;
    if (after.descriptors <= before.descriptors + DESCRIPTOR_SLACK) {
      tally.pass(descriptors);
    } else tally.fail(descriptors, "they leak");
  }
}

async function soak(
  stage: Stage,
  minutes: number,
  tally: Tally,
): Promise<void> {
  const end = performance.now() + minutes * 60_000;
  let first: Holdings | undefined;
  let last: Holdings | undefined;
  for (let round = 1; last === undefined || performance.now() < end; round++) {
    await tally.run(`round ${round}`, async () => {
      await playRound(stage);
      await untilQuiet(stage);
    });
    last = await holdings(stage);
    first ??= last;
    console.log(`     ${JSON.stringify(last)}`);
    for (const { child } of [stage.server, stage.steady]) {
      if (child.hasEnded) {
        tally.fail(`${child.name} stays up`, await child.logTail());
        return;
      }
    }
  }
  assess(first!, last!, tally);
}

/** Runs the mixed load for so many minutes, on programs of `maker`. */
export async function soakMixedLoad(
  minutes: number,
  maker: Maker,
  tally: Tally,
): Promise<void> {
  const workspace = await Workspace.make();
  endChildrenOnSignals(() => workspace.remove());
  const loadgen = await findPeer("loadgen");
  const targetAddress = `127.0.0.1:${freePort()}`;
  const target = new Child({
    name: "target",
    command: [loadgen, "target", targetAddress],
    logFile: workspace.path("target.log"),
  });
  const options = { maker, mode: "http-connect", transport: "uds" } as const;
  const server = await startServer(workspace, options);
  const steady = await startAgent(workspace, server, maker);
  const stage = { maker, workspace, server, steady, targetAddress, loadgen };
  await soak(stage, minutes, tally);
  await target.stop();
  await killAllChildren();
  if (tally.failed === 0) await workspace.remove();
  else console.log(`logs: ${workspace.folder}`);
}
