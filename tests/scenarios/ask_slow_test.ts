import type { ConduitProbe } from "../support/memory/conduit_probe.ts";
import { Workspace } from "../support/program/workspace.ts";
import { assertEquals, assertMatch } from "@std/assert";
import type { ConduitsAnswer } from "../../proto/admin/node_answer.ts";
import { ExitCode } from "../../cli/program/exit_codes.ts";
import type { Child } from "../support/program/child.ts";
import { runTunnel } from "../support/program/run.ts";
import { NodeStage } from "../support/rigs/node_stage.ts";
import { eventually } from "../support/rigs/tunnel_harness.ts";

function run(...words: string[]) {
  return runTunnel(words);
}

/** A server, an agent with one address too many, and a dial that stays. */
class Stage extends NodeStage {
  /** Names the server's state directory. */
  readonly state = `--state-dir=${this.server.stateDirectory}`;

  static async linked(): Promise<Stage> {
    const stage = new Stage(await Workspace.make());
    await stage.server.start();
    return stage;
  }

  linkedAgent(): Promise<Child> {
    // Nothing listens at the second one.
    return this.joined("edge-7", `--server=${this.addresses},127.0.0.1:1`);
  }

  async dial(): Promise<{ dial: Child; far: ConduitProbe }> {
    const dial = this.run(
      ...["dial", "dial", this.target.address, "--node=edge-7"] as const,
      `--server=unix:${this.server.socket}`,
    );
    return { dial, far: await this.target.next() };
  }
}

async function conduits(...words: string[]): Promise<ConduitsAnswer> {
  return JSON.parse((await run("conn", "list", "-o", "json", ...words)).stdout);
}

Deno.test("status, node and conn say who is connected, and since when one is not", async () => {
  await using stage = await Stage.linked();
  const { state, target: { address } } = stage;
  const agent = await stage.linkedAgent();
  await stage.dial();
  const list = await run("node", "list", state);
  assertEquals([list.code, list.stderr], [0, ""]);
  assertMatch(list.stdout, /^edge-7 +online +\d+s .*127\.0\.0\.1:\d+/m);
  const status = await run("status", state);
  assertEquals(status.code, 0);
  assertMatch(status.stdout, /^server \S+ {2}ready/);
  assertMatch(status.stdout, /Nodes +1 online, 0 offline/);
  assertMatch(status.stdout, new RegExp(`edge-7 +${address}`));
  assertMatch(status.stdout, /certificate of node edge-7/);
  const detail = await run("node", "describe", "edge-7", state);
  assertMatch(detail.stdout, /^node edge-7 {2}online/);
  assertMatch(detail.stdout, /Connected +1 connection/);
  assertMatch(detail.stdout, /node joined/);
  await agent.stop("SIGKILL");
  await eventually("the node is offline", async () => {
    const { stdout } = await run("node", "list", "--only=offline", state);
    return /^edge-7 +offline/m.test(stdout);
  });
  const gone = await run("status", state);
  assertMatch(gone.stdout, /OFFLINE +FOR +SINCE[^]*edge-7 +\d+s +20/);
  assertMatch(gone.stdout, /^server \S+ {2}not ready/);
  const { code } = await run("status", "--exit-code", state);
  assertEquals(code, ExitCode.ATTENTION);
});

Deno.test("an agent says why a link is missing, and knows connections by the server's ids", async () => {
  await using stage = await Stage.linked();
  const { state } = stage;
  await stage.linkedAgent();
  const { dial, far } = await stage.dial();
  const atAgent = ["--agent=local", `--state-dir=${stage.folderOf("edge-7")}`];
  const own = await run("status", ...atAgent);
  assertMatch(own.stdout, /^agent edge-7 {2}ready/);
  assertMatch(own.stdout, /127\.0\.0\.1:1 +(?:waiting|connecting)/);
  assertMatch(own.stdout, /connection refused.*failed \d+ times/);
  const there = await conduits(...atAgent);
  const here = await conduits(state, "--node=edge-7");
  assertEquals([here.total, there.total], [1, 1]);
  const { id } = here.conduits[0]!;
  assertEquals(there.conduits[0]!.id, id);
  assertEquals((await conduits(state, "--node=edge-8")).total, 0);
  const killed = await run("conn", "kill", id, state);
  assertEquals(killed.code, 0, killed.stderr);
  assertMatch(
    killed.stdout,
    /^Ended the connection [0-9a-f]{16} of .* at edge-7/,
  );
  assertEquals((await dial.ended).code, ExitCode.RESET);
  // It has read the caller's end already, and finds out when it writes.
  await eventually("the target's side is reset, too", () => {
    if (far.end === undefined) far.send("x");
    return far.end !== undefined;
  });
  const again = await run("conn", "kill", id, state);
  assertEquals(again.code, 1);
  assertMatch(again.stderr, /No connection has .* now: it may be over/);
});
