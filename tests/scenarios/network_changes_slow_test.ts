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
import { Workspace } from "../support/program/workspace.ts";
import {
  SERVER_HOST,
  TwoMachines,
  whyNoMachines,
} from "../support/rigs/two_machines.ts";
import { patience } from "../support/watch/patience.ts";

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
