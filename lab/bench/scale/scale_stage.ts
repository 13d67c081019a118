/**
 * Servers whose event loops are watched, and a crowd of light agents.
 *
 * @module
 */

import { Child } from "../../../tests/support/program/child.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import {
  clusterFlags,
  ServerProcess,
} from "../../../tests/support/rigs/processes.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import { sleep } from "../../../tests/support/watch/event_loop.ts";
import { sumOf } from "../../../tests/support/watch/metric_families.ts";
import { quantile } from "../bars.ts";
import type { LoopReport } from "../loop_watch.ts";
import { RIGHTS, V8_FLAGS } from "../../../cli/program/rights.ts";
import type { CrowdLine } from "./light_agents.ts";

/** Which agents, and where they go. */
interface CrowdOptions {
  readonly first: number;
  readonly count: number;
  readonly links: number;
  /** `HOST:PORT` of each. */
  readonly servers: readonly string[];
}

/** Starts one process of light agents. */
function startCrowd(
  workspace: Workspace,
  { first, count, links, servers }: CrowdOptions,
): Child {
  const { ca, agent } = workspace.certificates;
  return new Child({
    name: `agents from ${first} on`,
    command: [
      ...haProgram("light_agents.ts"),
      ...[ca, agent.cert, agent.key],
      ...[first, count, links].map(String),
      ...servers,
    ],
    logFile: workspace.path(`crowd-${first}.log`),
  });
}

/** What it printed last. */
async function crowdLine(crowd: Child): Promise<CrowdLine | undefined> {
  const text = await Deno.readTextFile(crowd.logFile).catch(() => "");
  const line = text.split("\n").findLast((one) => /^\{.*\}$/.test(one));
  return line === undefined ? undefined : JSON.parse(line);
}

/** The command line of a program of this folder. */
function haProgram(file: string): string[] {
  const config = new URL("../../../deno.json", import.meta.url).pathname;
  const module = new URL(file, import.meta.url).pathname;
  return [
    ...[Deno.execPath(), "run", "--quiet", "--no-prompt", V8_FLAGS],
    ...[...RIGHTS.programs, `--config=${config}`, module],
  ];
}

const DIAL_TIMEOUT_MS = 30_000;

/**
 * Dials once what nobody serves, at a frontend by the name of a node.
 *
 * @returns The status of the answer; 0: there was none.
 */
async function dialOnce(
  path: string,
  node: string,
): Promise<{ readonly status: number; readonly tookMs: number }> {
  const startMs = performance.now();
  const socket = await Deno.connect({ transport: "unix", path });
  const timer = setTimeout(() => socket.close(), DIAL_TIMEOUT_MS);
  const head = `CONNECT 127.0.0.1:1 HTTP/1.1\r\ntunnel-node: ${node}\r\n\r\n`;
  const bytes = new Uint8Array(4_096);
  try {
    await socket.write(new TextEncoder().encode(head));
    const count = await socket.read(bytes) ?? 0;
    const text = new TextDecoder().decode(bytes.subarray(0, count));
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0);
    socket.close();
    return { status, tookMs: performance.now() - startMs };
  } catch {
    return { status: 0, tookMs: performance.now() - startMs };
  } finally {
    clearTimeout(timer);
  }
}

/** One process makes as many handshakes as a server takes; some are enough. */
const CROWDS = 4;

/** Agents arrive no faster than handshakes are made. */
const ARRIVAL_TIMEOUT_MS = 600_000;
const LOOK_MS = 50;
const DIALS = 2_000;

/** How long nothing happens, for the measure of it. */
const IDLE_MS = 10_000;

/** How long it is looked how a server does without another one. */
const WITHOUT_MS = 5_000;

/** How long something took, and what it did to the event loop. */
export class Spell {
  constructor(readonly tookMs: number, readonly longestTurnMs: number) {}

  toString(): string {
    return `${(this.tookMs / 1000).toFixed(2)} s, longest turn ` +
      `${this.longestTurnMs.toFixed(1)} ms`;
  }
}

/** Many times of one thing. */
class Times {
  readonly longestTurnMs: number;

  constructor(readonly ms: readonly number[], turnMs = 0) {
    this.longestTurnMs = turnMs;
  }

  toString(): string {
    const of = (share: number) => quantile(this.ms, share).toFixed(2);
    return `median ${of(0.5)} ms, p99 ${of(0.99)} ms, slowest ${of(1)} ms`;
  }
}

/** One server, and the watch on it. */
class WatchedServer extends ServerProcess {
  readonly #watchPort = freePort();

  /** @param flags All agents are at one address here, so there may be many. */
  constructor(
    workspace: Workspace,
    id: string,
    flags: readonly string[] = ["--max-connections-per-source=65536"],
  ) {
    super(workspace, {
      id,
      flags: [
        ...["--v=0", "--server-count=1", "--server-port=0", "--admin-port=0"],
        ...[...clusterFlags(workspace), ...flags],
      ],
    });
    const program = haProgram("watched_server.ts");
    this.program = [...program, String(this.#watchPort), "server"];
  }

  override async start(): Promise<Child> {
    const child = this.run(this.command(`--uds-name=${this.socket}`));
    await child.untilReady(`${this.healthUrl}/healthz`);
    return child;
  }

  async take(path: "take" | "settle" = "take"): Promise<LoopReport> {
    const url = `http://127.0.0.1:${this.#watchPort}/${path}`;
    return await (await fetch(url)).json();
  }

  /** Distinct agents, as it counts them. */
  agents(): Promise<number> {
    const name = "konnectivity_network_proxy_server_ready_backend_connections";
    return sumOf(this.healthUrl, name);
  }
}

/** How agents came back to a server that was away. */
interface Return {
  readonly awayMs: number;
  /** Since it listened again: until each has a link. */
  readonly tookMs: number;
  readonly allLinksMs: number;
  /** Attempts that failed since then, and why the last one did. */
  readonly failed: number;
  readonly reason: string;
}

/** See the module description. */
export class ScaleStage {
  readonly #servers: WatchedServer[] = [];
  #crowds: Child[] = [];
  /** How many agents there are now. */
  #present = 0;

  constructor(
    private readonly workspace: Workspace,
    readonly agents: number,
    readonly links: number,
  ) {}

  /**
   * Agents whose server is killed and started again, each time after another
   * while: until all of them are back. It has its usual limits.
   */
  async *comeBack(
    agents: number,
    awayMs: readonly number[],
  ): AsyncGenerator<Return> {
    const server = new WatchedServer(this.workspace, "killed", []);
    await server.start();
    const crowd = startCrowd(this.workspace, {
      ...{ first: 0, count: agents, links: this.links },
      servers: [server.address],
    });
    const seen = async (isSo: (line: CrowdLine) => boolean) => {
      let line: CrowdLine | undefined;
      await until(async () => {
        line = await crowdLine(crowd);
        return line !== undefined && isSo(line);
      });
      return line!;
    };
    const allLinked = ({ links }: CrowdLine) => links === agents * this.links;
    await seen(allLinked);
    for (const ms of awayMs) {
      await server.stop("SIGKILL");
      await seen(({ linked }) => linked === 0);
      await sleep(ms);
      await server.start();
      const startMs = Date.now();
      const { failures } = await seen(() => true);
      const back = await seen(({ linked }) => linked === agents);
      const all = await seen(allLinked);
      yield {
        awayMs: ms,
        tookMs: back.atMs - startMs,
        allLinksMs: all.atMs - startMs,
        failed: all.failures - failures,
        reason: all.reason,
      };
    }
    await Promise.all([crowd, server].map((one) => one.stop("SIGKILL")));
  }

  /** Starts the first server. */
  async start(): Promise<void> {
    const server = new WatchedServer(this.workspace, "one");
    this.#servers.push(server);
    await server.start();
  }

  async startSecond(): Promise<void> {
    const server = new WatchedServer(this.workspace, "two");
    this.#servers.push(server);
    await server.start();
  }

  /** So many agents come, in place of those that were there. */
  async arrive(agents: number, servers = 1): Promise<Spell> {
    await this.#disperse();
    const reached = this.#servers.slice(0, servers);
    for (const server of reached) await server.take();
    const startMs = Date.now();
    this.#crowds = this.#gather(agents, reached);
    const wanted = agents * this.links * servers;
    await until(async () => {
      const lines = await Promise.all(this.#crowds.map(crowdLine));
      const links = lines.map((line) => line?.links ?? 0);
      return links.reduce((sum, one) => sum + one, 0) >= wanted;
    });
    const tookMs = Date.now() - startMs;
    this.#present = agents;
    return new Spell(tookMs, await this.#longestTurn(reached));
  }

  async #longestTurn(servers: readonly WatchedServer[]): Promise<number> {
    const reports = await Promise.all(servers.map((one) => one.take()));
    return Math.max(...reports.map(({ longestCpuMs }) => longestCpuMs));
  }

  #gather(agents: number, servers: readonly WatchedServer[]): Child[] {
    const share = Math.ceil(agents / CROWDS);
    return Array.from(
      { length: CROWDS },
      (_, at) =>
        startCrowd(this.workspace, {
          first: at * share,
          count: Math.max(0, Math.min(share, agents - at * share)),
          links: this.links,
          servers: servers.map(({ address }) => address),
        }),
    );
  }

  async #disperse(): Promise<void> {
    await Promise.all(this.#crowds.map((crowd) => crowd.stop("SIGKILL")));
    this.#crowds = [];
    for (const server of this.#servers) {
      await until(async () => await server.agents() === 0);
    }
  }

  get #first(): WatchedServer {
    return this.#servers[0]!;
  }

  /** Of the first server, when what is not used has been collected. */
  async settled(): Promise<LoopReport> {
    await this.#first.take("settle");
    const report = await this.#first.take("settle");
    await this.#first.take();
    return report;
  }

  async idle(): Promise<{ cpuPercent: number; longestTurnMs: number }> {
    const before = await this.#first.take();
    await sleep(IDLE_MS);
    const { cpuMs, longestCpuMs } = await this.#first.take();
    const cpuPercent = (cpuMs - before.cpuMs) / IDLE_MS * 100;
    return { cpuPercent, longestTurnMs: longestCpuMs };
  }

  /** One after the other, each by the name of a node. */
  async dialTimes(): Promise<Times> {
    return await this.#times(() => `node-${this.#anyAgent()}`);
  }

  /** The same by names that nobody has. */
  async refusalTimes(): Promise<Times> {
    return await this.#times(() => `nobody-${Math.random()}`);
  }

  #anyAgent(): number {
    return Math.floor(Math.random() * this.#present);
  }

  async #times(node: () => string): Promise<Times> {
    await this.#first.take();
    const times: number[] = [];
    for (let dial = 0; dial < DIALS; dial++) {
      times.push((await dialOnce(this.#first.socket, node())).tookMs);
    }
    const { longestCpuMs } = await this.#first.take();
    return new Times(times, longestCpuMs);
  }

  /** Of metrics and of the readiness probe. */
  async scrapeTimes(): Promise<Times> {
    await this.#first.take();
    const times: number[] = [];
    for (let round = 0; round < 100; round++) {
      for (const path of ["metrics", "readyz"]) {
        const startMs = performance.now();
        await (await fetch(`${this.#first.healthUrl}/${path}`)).text();
        times.push(performance.now() - startMs);
      }
    }
    const { longestCpuMs } = await this.#first.take();
    return new Times(times, longestCpuMs);
  }

  /** All agents are killed: until the server knows, and counts none. */
  async loseAgents(): Promise<Spell> {
    await this.#first.take();
    const startMs = Date.now();
    for (const crowd of this.#crowds) crowd.signal("SIGKILL");
    await until(async () => await this.#first.agents() === 0);
    const tookMs = Date.now() - startMs;
    return new Spell(tookMs, await this.#longestTurn([this.#first]));
  }

  /** The first server is killed, and the second one dialed all the while. */
  async loseServer(warmUp: number): Promise<ServerLoss> {
    const second = this.#servers[1]!;
    const dial = () => dialOnce(second.socket, `node-${this.#anyAgent()}`);
    for (let count = 0; count < warmUp; count++) await dial();
    await second.take();
    this.#first.child.signal("SIGKILL");
    const untilMs = Date.now() + WITHOUT_MS;
    const loss = { dials: 0, failed: 0, slowestMs: 0 };
    while (Date.now() < untilMs) {
      const { status, tookMs } = await dial();
      loss.dials++;
      // What light agents answer, through the server.
      if (status !== 502) loss.failed++;
      loss.slowestMs = Math.max(loss.slowestMs, tookMs);
    }
    const { longestCpuMs } = await second.take();
    return new ServerLoss(loss, longestCpuMs);
  }
}

/** What callers of a server saw while another one was killed. */
class ServerLoss {
  readonly failed: number;
  readonly slowestMs: number;
  readonly #dials: number;

  constructor(
    seen: { dials: number; failed: number; slowestMs: number },
    private readonly turnMs: number,
  ) {
    this.failed = seen.failed;
    this.slowestMs = seen.slowestMs;
    this.#dials = seen.dials;
  }

  toString(): string {
    return `${this.#dials} dials at the other one, ${this.failed} failed, ` +
      `slowest ${this.slowestMs.toFixed(1)} ms, longest turn ` +
      `${this.turnMs.toFixed(1)} ms`;
  }
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const deadlineMs = Date.now() + ARRIVAL_TIMEOUT_MS;
  while (!await isSo()) {
    if (Date.now() > deadlineMs) throw new Error("it takes too long");
    await sleep(LOOK_MS);
  }
}
