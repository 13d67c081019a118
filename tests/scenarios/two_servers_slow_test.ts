/**
 * Several servers, as processes that come and go: every address is linked, and
 * who comes back is linked again at once.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { Child } from "../support/program/child.ts";
import { freePort } from "../support/program/ports.ts";
import { ourCommand } from "../support/program/tunnel.ts";
import { Workspace } from "../support/program/workspace.ts";
import { Balancer } from "../support/rigs/balancer.ts";
import { ServerProcess } from "../support/rigs/server_process.ts";
import { patience } from "../support/watch/patience.ts";

/** What the bar allows between a server that listens and its agent. */
const RELINK_MS = 2_000;

class Rig implements AsyncDisposable {
  readonly servers: ServerProcess[] = [];
  agent: Child | undefined;

  private constructor(readonly workspace: Workspace) {}

  static async open(ids: readonly string[], count: number): Promise<Rig> {
    const rig = new Rig(await Workspace.make());
    const flags = [`--server-count=${count}`];
    for (const id of ids) {
      rig.servers.push(new ServerProcess(rig.workspace, id, flags));
    }
    await Promise.all(rig.servers.map((server) => server.start()));
    return rig;
  }

  /** An agent with flags as users leave them. */
  startAgent(addresses: readonly string[]): void {
    const { ca, agent } = this.workspace.certificates;
    this.agent = new Child({
      name: "agent",
      command: [
        ...ourCommand("agent"),
        `--server=${addresses.join(",")}`,
        `--ca-cert=${ca}`,
        `--agent-cert=${agent.cert}`,
        `--agent-key=${agent.key}`,
        "--health-server-host=127.0.0.1",
        `--health-server-port=${freePort()}`,
        `--admin-server-port=${freePort()}`,
      ],
      logFile: this.workspace.path("agent.log"),
    });
  }

  agentLog(): Promise<string> {
    return Deno.readTextFile(this.agent!.logFile);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.agent?.stop("SIGKILL");
    for (const server of this.servers) await server.stop("SIGKILL");
    await this.workspace.remove();
  }
}

for (const count of [1, 2]) {
  Deno.test(`a server that was away is linked again, count ${count}`, async () => {
    await using rig = await Rig.open(["s1", "s2"], count);
    const [one, other] = rig.servers as [ServerProcess, ServerProcess];
    rig.startAgent([one.address, other.address]);
    await Promise.all(rig.servers.map((server) => server.untilLinked()));
    for (const awayMs of count === 1 ? [3_000] : [3_000, 30_000]) {
      await other.stop("SIGTERM");
      await new Promise((resolve) => setTimeout(resolve, awayMs));
      await other.start();
      const tookMs = await other.untilLinked();
      assert(tookMs <= patience(RELINK_MS), `away ${awayMs} ms: ${tookMs} ms`);
    }
    // Both at once.
    await Promise.all(rig.servers.map((server) => server.stop("SIGKILL")));
    await Promise.all(rig.servers.map((server) => server.start()));
    for (const server of rig.servers) {
      const tookMs = await server.untilLinked();
      assert(tookMs <= patience(RELINK_MS), `both away: ${tookMs} ms`);
    }
  });
}

Deno.test("three servers behind one address, and one that never was", async () => {
  await using rig = await Rig.open(["s1", "s2", "s3"], 3);
  const balancer = new Balancer();
  for (const { agentPort } of rig.servers) balancer.add(agentPort);
  rig.startAgent([
    `127.0.0.1:${balancer.port}`,
    "nobody.invalid:8091",
    `127.0.0.1:${freePort()}`,
  ]);
  await Promise.all(rig.servers.map((server) => server.untilLinked()));
  balancer.close();
});

Deno.test("two servers with one id are linked, and reported", async () => {
  await using rig = await Rig.open(["s1", "s1"], 1);
  rig.startAgent(rig.servers.map(({ address }) => address));
  await Promise.all(rig.servers.map((server) => server.untilLinked()));
  // Said after half a minute, when both still stand.
  await rig.agent!.untilPrinted(/WARN.*have one id, "s1".*--server-id/);
  const log = await rig.agentLog();
  const linked = log.match(/linked to server .*/g)!;
  const addresses = linked.map((line) => /address="?([^" ]+)/.exec(line)?.[1]);
  assertEquals(
    new Set(addresses),
    new Set(rig.servers.map(({ address }) => address)),
  );
});
