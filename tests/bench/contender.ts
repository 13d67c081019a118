/**
 * One side of a comparison: a server and an agent of one maker, measured by
 * the same generator against the same target.
 *
 * @module
 */

import { Child } from "../peers/child.ts";
import { findPeer } from "../peers/peers.ts";
import {
  type Maker,
  type RunningAgent,
  type RunningServer,
  startAgent,
  startServer,
  stopTunnel,
} from "../peers/tunnel.ts";
import type { Workspace } from "../peers/workspace.ts";
import type { Metric, Scale } from "./metrics.ts";

/** What one run gave; numbers by the names of the generator. */
export type Sample = Readonly<Record<string, number>>;

/** A run that moved less than was asked for, or had an error: no result. */
export class SpoiledRunError extends Error {
  override name = "SpoiledRunError";
}

const LOAD_TIMEOUT_MS = 180_000;
const SETTLE_MS = 2_000;
/** The unit of CPU time in /proc, fixed on Linux. */
const TICKS_PER_SECOND = 100;
const PAGE_OCTETS = 4096;

interface Running {
  readonly server: RunningServer;
  readonly agent: RunningAgent;
}

/** See the module description. */
export class Contender {
  #running: Running | undefined;

  constructor(
    readonly maker: Maker,
    readonly workspace: Workspace,
    readonly targetAddress: string,
  ) {}

  async measure(metric: Metric, scale: Scale): Promise<Sample> {
    if (metric.isFresh) await this.stop();
    const running = await this.#start();
    const flags = metric.load?.(scale);
    const sample = flags === undefined
      ? await this.#rest(running, scale)
      : await this.#load(running, flags);
    if (metric.isFresh) await this.stop();
    return sample;
  }

  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    if (running !== undefined) await stopTunnel(running.server, running.agent);
  }

  async #start(): Promise<Running> {
    if (this.#running !== undefined) return this.#running;
    const server = await startServer(this.workspace, {
      maker: this.maker,
      mode: "http-connect",
      transport: "uds",
    });
    const agent = await startAgent(this.workspace, server, this.maker);
    this.#running = { server, agent };
    return this.#running;
  }

  async #load(running: Running, flags: readonly string[]): Promise<Sample> {
    const { server, agent } = running;
    if (server.frontend.transport !== "uds") throw new TypeError("no socket");
    const child = new Child({
      name: "load generator",
      command: [
        await findPeer("loadgen"),
        ...flags,
        `-via=unix:${server.frontend.path}`,
        `-to=${this.targetAddress}`,
        `-pids=${server.child.pid},${agent.child.pid}`,
      ],
      logFile: this.workspace.path("loadgen.log"),
    });
    const timer = setTimeout(() => child.signal("SIGKILL"), LOAD_TIMEOUT_MS);
    const { success } = await child.ended;
    clearTimeout(timer);
    const printed = await child.logTail();
    if (!success) throw new SpoiledRunError(`the generator failed: ${printed}`);
    for (const end of [server.child, agent.child]) {
      if (end.hasEnded) throw new SpoiledRunError(`the ${end.name} died`);
    }
    return checkSample(JSON.parse(printed));
  }

  async #rest(running: Running, scale: Scale): Promise<Sample> {
    await sleep(SETTLE_MS);
    const server = running.server.child.pid;
    const agent = running.agent.child.pid;
    const before = [await usage(server), await usage(agent)] as const;
    await sleep(scale.restSeconds * 1000);
    const after = [await usage(server), await usage(agent)] as const;
    const percent = (end: 0 | 1) =>
      (after[end].cpuSeconds - before[end].cpuSeconds) / scale.restSeconds *
      100;
    return {
      serverRssMib: after[0].rssOctets / 2 ** 20,
      agentRssMib: after[1].rssOctets / 2 ** 20,
      serverCpuPct: percent(0),
      agentCpuPct: percent(1),
    };
  }
}

/**
 * Passes a result of the generator on if it is whole.
 *
 * @throws {SpoiledRunError} On any error and on a missing octet.
 */
export function checkSample(printed: Record<string, unknown>): Sample {
  const number = (key: string) => Number(printed[key] ?? NaN);
  if (number("errs") !== 0) {
    throw new SpoiledRunError(`${printed["errs"]} connections had errors`);
  }
  if (
    printed["wanted"] !== undefined && number("octets") !== number("wanted")
  ) {
    throw new SpoiledRunError(
      `${printed["octets"]} of ${printed["wanted"]} octets were moved`,
    );
  }
  if (printed["mode"] === "idle" && number("ok") !== number("n")) {
    throw new SpoiledRunError(`${printed["ok"]} of ${printed["n"]} are open`);
  }
  const numbers = Object.entries(printed)
    .filter((entry): entry is [string, number] => typeof entry[1] === "number");
  return Object.fromEntries(numbers);
}

/** CPU time and resident memory of a process, from /proc. */
async function usage(
  pid: number,
): Promise<{ cpuSeconds: number; rssOctets: number }> {
  // Deno opens /proc to nobody with less than all permissions; `cat` may.
  const { stdout } = await new Deno.Command("cat", {
    args: [`/proc/${pid}/stat`],
  }).output();
  const stat = new TextDecoder().decode(stdout);
  // The name in parentheses may hold anything, so count behind it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [user, system, pages] = [fields[11], fields[12], fields[21]];
  return {
    cpuSeconds: (Number(user) + Number(system)) / TICKS_PER_SECOND,
    rssOctets: Number(pages) * PAGE_OCTETS,
  };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
