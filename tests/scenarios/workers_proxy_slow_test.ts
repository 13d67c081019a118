/**
 * Several workers of a service proxy and of an agent, as real processes.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { AdminClient } from "../../admin/ask/admin_client.ts";
import { workerSocket } from "../../net/admin/own_group.ts";
import {
  PROXY_STATUS_PATH,
  type ProxyStatus,
} from "../../services/proxy/status/proxy_status.ts";
import { DatagramPeer } from "../support/peers/datagrams.ts";
import { askEcho, SteadyRequests } from "../support/peers/steady_requests.ts";
import { ask } from "../support/rigs/proxy_rig.ts";
import { ProxyStage } from "../support/rigs/proxy_stage.ts";
import { TunnelProcesses } from "../support/rigs/tunnel_processes.ts";
import { byWorker, workersOf } from "../support/rigs/workers.ts";
import { eventually } from "../support/watch/patience.ts";

/** What a worker of the proxy says of the service. */
async function served(path: string) {
  const client = new AdminClient("proxy", { kind: "unix", path });
  const { services } = await client.get<ProxyStatus>(PROXY_STATUS_PATH);
  return services.find(({ protocol }) => protocol === "tcp")!;
}

Deno.test("two workers serve the ports of a proxy, TCP and UDP, and one is killed", async () => {
  await using stage = await ProxyStage.open();
  const socket = stage.workspace.path("admin.sock");
  const proxy = stage.start("--workers=2", `--admin-socket=${socket}`);
  const [, second] = await workersOf(proxy);
  await proxy.untilReady(stage.readyUrl);
  const held: Deno.TcpConn[] = [];
  for (let count = 0; count < 16; count++) held.push(await stage.connect());
  for (const one of held) assertEquals(await ask(one, "held"), "held");
  const counts = await Promise.all(
    [0, 1].map(async (index) =>
      (await served(workerSocket(socket, index))).accepted
    ),
  );
  assertEquals(counts.reduce((sum, count) => sum + count), 16);
  const metrics = `http://127.0.0.1:${stage.adminPort}/metrics`;
  assertEquals([...await byWorker(metrics, "tunnel_workers")], [[
    undefined,
    2,
  ]]);
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
  await requests.mustBeAnswered(20);
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
    await requests.mustBeAnswered(20);
  });
}

Deno.test("each worker of a proxy goes on in the round of the one before", async () => {
  await using stage = await ProxyStage.open(7);
  const socket = stage.workspace.path("admin.sock");
  const flags = ["--workers=2", `--admin-socket=${socket}`];
  /** By worker, what each endpoint was given. */
  const totals = [new Map<string, number>(), new Map<string, number>()];
  const connectOften = async () => {
    for (let count = 0; count < 40; count++) {
      const one = await stage.connect();
      assertEquals(await ask(one, "x"), "x");
      one.close();
    }
    for (const [index, sums] of totals.entries()) {
      const { endpoints } = await served(workerSocket(socket, index));
      for (const { address, total } of endpoints) {
        sums.set(address, (sums.get(address) ?? 0) + total);
      }
    }
  };
  const old = stage.start(...flags);
  await old.untilReady(stage.readyUrl);
  await connectOften();
  const young = stage.start("--replace", ...flags);
  await young.untilPrinted(/took over from process/);
  assertEquals((await old.ended).code, 0);
  await connectOften();
  for (const sums of totals) {
    const counts = [...sums.values()];
    assertEquals(counts.length, 7);
    assert(Math.max(...counts) - Math.min(...counts) <= 1, `${counts}`);
  }
});

Deno.test("two workers of an agent are one agent, and one of them may die", async () => {
  await using stage = await TunnelProcesses.open();
  const server = await stage.listening();
  const agent = await stage.launchAgent("--workers=2", "--links=1", "--v=2");
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
  await requests.mustBeAnswered(20);
  assert(!/duplicate/i.test(await server.logTail()), "they are one agent");
  agent.child.signal("SIGTERM");
  assertEquals((await agent.child.ended).code, 0);
  assertMatch(await agent.child.logTail(), /all workers have ended/);
});
