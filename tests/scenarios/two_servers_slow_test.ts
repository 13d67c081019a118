/**
 * Several servers, as processes that come and go: every address is linked, and
 * who comes back is linked again at once.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { freePort } from "../support/program/ports.ts";
import { Workspace } from "../support/program/workspace.ts";
import { Balancer } from "../support/rigs/balancer.ts";
import { Processes, type ServerProcess } from "../support/rigs/processes.ts";
import { patience } from "../support/watch/patience.ts";

/** What the bar allows between a server that listens and its agent. */
const RELINK_MS = 2_000;

async function open(ids: readonly string[], count: number): Promise<Processes> {
  const rig = new Processes(await Workspace.make());
  for (const id of ids) rig.addServer(id, `--server-count=${count}`);
  await Promise.all(rig.servers.map((server) => server.start()));
  return rig;
}

for (const count of [1, 2]) {
  Deno.test(`a server that was away is linked again, count ${count}`, async () => {
    await using rig = await open(["s1", "s2"], count);
    const [one, other] = rig.servers as [ServerProcess, ServerProcess];
    rig.agentAt([one.address, other.address]);
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
  await using rig = await open(["s1", "s2", "s3"], 3);
  const balancer = new Balancer();
  for (const { agentPort } of rig.servers) balancer.add(agentPort);
  rig.agentAt([
    `127.0.0.1:${balancer.port}`,
    "nobody.invalid:8091",
    `127.0.0.1:${freePort()}`,
  ]);
  await Promise.all(rig.servers.map((server) => server.untilLinked()));
  balancer.close();
});

Deno.test("two servers with one id are linked, and reported", async () => {
  await using rig = await open(["s1", "s1"], 1);
  const agent = rig.agentAt(rig.servers.map(({ address }) => address));
  await Promise.all(rig.servers.map((server) => server.untilLinked()));
  // Said after half a minute, when both still stand.
  await agent.untilPrinted(/WARN.*have one id, "s1".*--server-id/);
  const log = await Deno.readTextFile(agent.logFile);
  const linked = log.match(/linked to server .*/g)!;
  const addresses = linked.map((line) => /address="?([^" ]+)/.exec(line)?.[1]);
  assertEquals(
    new Set(addresses),
    new Set(rig.servers.map(({ address }) => address)),
  );
});
