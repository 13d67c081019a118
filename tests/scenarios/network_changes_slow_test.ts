/**
 * Networks that go and come back, in namespaces of their own: agents are back
 * within a second of the network, and what lives on is not cut.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import {
  launchAgent,
  type RunningAgent,
  type RunningServer,
  startServer,
} from "../support/program/tunnel.ts";
import { mustEnd } from "../support/program/run.ts";
import { Workspace } from "../support/program/workspace.ts";
import { patience } from "../support/watch/patience.ts";

/** The server's address. */
const SERVER_HOST = "10.99.0.1";

/** The agent's, at first. */
const AGENT_HOST = "10.99.0.2";

/** Why there can be none here; `undefined`: there can. */
function whyNoMachines(): string | undefined {
  if (Deno.build.os !== "linux") return "network namespaces are Linux's";
  return Deno.uid() === 0 ? undefined : "network namespaces need root";
}

class TwoMachines implements AsyncDisposable {
  readonly #server: string;
  readonly #agent: string;

  private constructor(readonly name: string) {
    this.#server = `${name}s`;
    this.#agent = `${name}a`;
  }

  static async make(): Promise<TwoMachines> {
    const two = new TwoMachines(`tl${crypto.randomUUID().slice(0, 8)}`);
    for (const machine of [two.#server, two.#agent]) {
      await ip("netns", "add", machine);
      await ip("-n", machine, "link", "set", "lo", "up");
    }
    await ip(
      ...["link", "add", "cable", "netns", two.#server, "type", "veth"],
      ...["peer", "name", "cable", "netns", two.#agent],
    );
    await two.address("server", "add", SERVER_HOST);
    await two.address("agent", "add", AGENT_HOST);
    for (const end of ["server", "agent"] as const) await two.cable(end, "up");
    return two;
  }

  /** Words in front of a command that runs on it. */
  on(end: "server" | "agent"): string[] {
    return ["ip", "netns", "exec", this.#of(end)];
  }

  async cable(end: "server" | "agent", state: "up" | "down"): Promise<void> {
    await ip("-n", this.#of(end), "link", "set", "cable", state);
  }

  async address(
    end: "server" | "agent",
    change: "add" | "del",
    host: string,
  ): Promise<void> {
    const machine = this.#of(end);
    await ip("-n", machine, "addr", change, `${host}/24`, "dev", "cable");
  }

  /** The agent's machine is in another network, as after roaming. */
  async readdress(host: string): Promise<void> {
    await this.address("agent", "del", AGENT_HOST);
    await this.address("agent", "add", host);
  }

  #of(end: "server" | "agent"): string {
    return end === "server" ? this.#server : this.#agent;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const machine of [this.#server, this.#agent]) {
      await ip("netns", "del", machine);
    }
  }
}

function ip(...args: readonly string[]): Promise<string> {
  return mustEnd(["ip", ...args]);
}

/** As users have it: two links to a server. */
const LINKS = 2;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

class Stage implements AsyncDisposable {
  private constructor(
    readonly workspace: Workspace,
    readonly machines: TwoMachines,
    readonly server: RunningServer,
    readonly agent: RunningAgent,
  ) {}

  static async open(): Promise<Stage> {
    const workspace = await Workspace.make();
    const machines = await TwoMachines.make();
    const server = await startServer(workspace, {
      maker: "ours",
      mode: "grpc",
      transport: "uds",
      agentHost: SERVER_HOST,
      prefix: machines.on("server"),
      extraFlags: ["--v=2"],
    });
    await server.child.untilPrinted(/server started/);
    const agent = await launchAgent(
      workspace,
      server,
      "ours",
      ["--v=2", "--agent-id=a"],
      machines.on("agent"),
    );
    const stage = new Stage(workspace, machines, server, agent);
    await stage.untilLinked(LINKS);
    return stage;
  }

  /** How often the agent has written it. */
  async count(line: string): Promise<number> {
    const log = await Deno.readTextFile(this.agent.child.logFile);
    return log.split(line).length - 1;
  }

  /** Links that were made since the beginning. */
  async untilLinked(count: number): Promise<void> {
    const pattern = `(linked to server[^]*){${count}}`;
    await this.agent.child.untilPrinted(new RegExp(pattern));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.agent.child.stop("SIGKILL");
    await this.server.child.stop("SIGKILL");
    await this.machines[Symbol.asyncDispose]();
    await this.workspace.remove();
  }
}

const why = whyNoMachines();
const note = why === undefined ? "" : ` (not here: ${why})`;

function test(name: string, fn: (stage: Stage) => Promise<void>): void {
  Deno.test({
    name: `${name}${note}`,
    ignore: why !== undefined,
    fn: async () => {
      await using stage = await Stage.open();
      await fn(stage);
    },
  });
}

/** In milliseconds. */
async function timeOf(work: Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await work;
  return performance.now() - startMs;
}

test("a cable that is out for three seconds costs no link", async (stage) => {
  await stage.machines.cable("agent", "down");
  await pause(3_000);
  await stage.machines.cable("agent", "up");
  await pause(3_000);
  assertEquals(await stage.count("link lost"), 0);
});

test("a cable that is out for longer: linked again within a second", async (stage) => {
  await stage.machines.cable("agent", "down");
  await stage.agent.child.untilPrinted(/link lost[^]*link lost/);
  await pause(4_000);
  await stage.machines.cable("agent", "up");
  const tookMs = await timeOf(stage.untilLinked(LINKS + 1));
  assert(tookMs < patience(1_000), `${tookMs} ms`);
});

test("a machine with another address is linked again within a second", async (stage) => {
  await stage.machines.readdress("10.99.0.9");
  const tookMs = await timeOf(stage.untilLinked(LINKS + 1));
  assert(tookMs < patience(1_000), `${tookMs} ms`);
  // What was made before is given up once it is certain.
  await stage.agent.child.untilPrinted(/link lost[^]*link lost/);
});

test("an agent that stood still for longer than the server waits is back at once", async (stage) => {
  stage.agent.child.signal("SIGSTOP");
  await stage.server.child.untilPrinted(/agent gone/);
  stage.agent.child.signal("SIGCONT");
  const tookMs = await timeOf(stage.untilLinked(LINKS + 1));
  assert(tookMs < patience(1_000), `${tookMs} ms`);
});
