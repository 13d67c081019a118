/**
 * Several workers of a service proxy and of an agent, as real processes.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { Workspace } from "../support/program/workspace.ts";
import { DatagramPeer } from "../support/peers/datagrams.ts";
import { askEcho, SteadyRequests } from "../support/peers/steady_requests.ts";
import { ask } from "../support/rigs/proxy_rig.ts";
import { ProxyStage } from "../support/rigs/proxy_stage.ts";
import { ServerStage } from "../support/rigs/server_stage.ts";
import { workersOf } from "../support/rigs/workers.ts";
import { eventually } from "../support/watch/patience.ts";

async function assertNoneFailed(requests: SteadyRequests): Promise<void> {
  const { answered, failures } = await requests.stop();
  assertEquals(Object.fromEntries(failures), {}, `${answered} were answered`);
  assert(answered > 20, `only ${answered} were asked`);
}

/** What the proxy counts for the service, over all workers. */
async function accepted(stage: ProxyStage): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${stage.adminPort}/debug/proxy`);
  const { ports } = await answer.json();
  // deno-lint-ignore no-explicit-any -- another process's JSON
  return ports.find((one: any) => one.protocol === "tcp").accepted;
}

Deno.test("two workers serve the ports of a proxy, TCP and UDP, and one is killed", async () => {
  await using stage = await ProxyStage.open();
  const proxy = stage.start("--workers=2");
  const [, second] = await workersOf(proxy);
  await proxy.untilReady(stage.readyUrl);
  const held: Deno.TcpConn[] = [];
  for (let count = 0; count < 16; count++) held.push(await stage.connect());
  for (const one of held) assertEquals(await ask(one, "held"), "held");
  assertEquals(await accepted(stage), 16);
  const clients = await Promise.all(
    Array.from({ length: 8 }, () => DatagramPeer.open()),
  );
  for (let round = 0; round < 3; round++) {
    for (const client of clients) {
      assertEquals(await client.ask("x", stage.udpPort), "x");
    }
  }
  Deno.kill(second!, "SIGKILL");
  await proxy.untilPrinted(/worker 1 .* has ended \(SIGKILL\)/);
  const requests = new SteadyRequests(askEcho(stage.port));
  await proxy.untilPrinted(/worker 1 runs again/);
  await requests.more(100);
  await assertNoneFailed(requests);
  for (const client of clients) {
    assertEquals(await client.ask("y", stage.udpPort), "y");
    await client[Symbol.asyncDispose]();
  }
  for (const one of held) one.close();
  proxy.signal("SIGTERM");
  assertEquals((await proxy.ended).code, 0);
});

for (const [before, after] of [[1, 2], [2, 1]]) {
  Deno.test(`a proxy of ${before} workers is replaced by ${after}`, async () => {
    await using stage = await ProxyStage.open();
    await using client = await DatagramPeer.open();
    const old = stage.start(`--workers=${before}`);
    await old.untilReady(stage.readyUrl);
    const held = await stage.connect();
    assertEquals(await ask(held, "held"), "held");
    const requests = new SteadyRequests(askEcho(stage.port));
    const young = stage.start("--replace", `--workers=${after}`);
    await young.untilPrinted(/took over from process/);
    await old.untilPrinted(/handed over to process/);
    assertEquals(await client.ask("x", stage.udpPort), "x");
    await requests.more(100);
    assertEquals(await ask(held, "still"), "still");
    held.close();
    assertEquals((await old.ended).code, 0);
    await assertNoneFailed(requests);
  });
}

Deno.test("two workers of an agent are one agent, and one of them may die", async () => {
  await using stage = new ServerStage(await Workspace.make());
  const server = stage.start();
  await server.untilReady(`${stage.healthUrl}/healthz`);
  const agent = await stage.launch("--workers=2", "--links=1", "--v=2");
  const [, second] = await workersOf(agent.child);
  await agent.child.untilReady(`${agent.healthUrl}/readyz`);
  const links = async () => {
    const text = await (await fetch(`${stage.healthUrl}/metrics`)).text();
    return Number(/server_links{carrier="streams"} (\d+)/.exec(text)?.[1]);
  };
  await eventually("both are linked", async () => await links() === 2);
  Deno.kill(second!, "SIGKILL");
  await agent.child.untilPrinted(/worker 1 .* has ended \(SIGKILL\)/);
  await eventually("one is gone", async () => await links() < 2);
  const requests = stage.requests("grpc");
  await eventually("both are linked", async () => await links() === 2);
  await requests.more(40);
  await assertNoneFailed(requests);
  assert(!/duplicate/i.test(await server.logTail()), "they are one agent");
  agent.child.signal("SIGTERM");
  assertEquals((await agent.child.ended).code, 0);
  assertMatch(await agent.child.logTail(), /all workers have ended/);
});
