/**
 * Several workers of one program, as real processes, with conduits held and
 * dials running.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import type { ConduitProbe } from "../support/memory/conduit_probe.ts";
import { TunnelProcesses } from "../support/rigs/tunnel_processes.ts";
import { byWorker, workersOf } from "../support/rigs/workers.ts";

const TWO = "--workers=2";

async function metric(stage: TunnelProcesses, series: string) {
  return [...await byWorker(`${stage.healthUrl}/metrics`, series)];
}

/** Of held conduits, which still answer. */
async function alive(held: readonly ConduitProbe[]): Promise<number> {
  let count = 0;
  for (const one of held) {
    one.send("still");
    const answered = one.received(5).then(() => true);
    const ended = one.closed.then(() => false);
    if (await Promise.race([answered, ended])) count++;
  }
  return count;
}

Deno.test("a worker that is killed costs its own conduits, and is replaced", async () => {
  await using stage = await TunnelProcesses.open();
  const { server, pids: [, second] } = await stage.linkedWorkers();
  const held: ConduitProbe[] = [];
  for (let count = 0; count < 16; count++) {
    held.push(await stage.hold(count % 2 === 0 ? "grpc" : "http-connect"));
  }
  Deno.kill(second!, "SIGKILL");
  await server.untilPrinted(/worker 1 .* has ended \(SIGKILL\): the conn/);
  const requests = [stage.requests("grpc"), stage.requests("http-connect")];
  const left = await alive(held);
  assert(left > 0 && left < 16, `${left} of 16 go on`);
  await server.untilPrinted(/worker 1 runs again \(process \d+\)/);
  await stage.untilEachWorkerHas(1, 2);
  for (const one of requests) await one.more(40);
  for (const one of requests) await one.mustBeAnswered(20);
  assertEquals(await metric(stage, "tunnel_worker_restarts_total"), [[
    undefined,
    1,
  ]]);
  for (const one of held) one.reset("over");
});

Deno.test("SIGTERM drains all workers, SIGHUP reaches all, and they answer as one", async () => {
  await using stage = await TunnelProcesses.open();
  const { server } = await stage.linkedWorkers();
  assertMatch(await stage.server.readiness(), /^200/);
  const held: ConduitProbe[] = [];
  for (let count = 0; count < 8; count++) {
    held.push(await stage.hold("grpc"));
  }
  const established =
    "konnectivity_network_proxy_server_established_connections";
  const counts = await metric(stage, established);
  assertEquals(counts.map(([worker]) => worker), [0, 1]);
  assertEquals(counts.reduce((sum, [, count]) => sum + count, 0), 8);
  server.signal("SIGHUP");
  for (const worker of [0, 1]) {
    await server.untilPrinted(new RegExp(`read again.*worker=${worker}`));
  }
  server.signal("SIGTERM");
  await server.untilPrinted(/SIGTERM: all workers drain/);
  assertMatch(await stage.server.readiness(), /^500 the server is stopping/);
  assertEquals(await alive(held), 8);
  for (const one of held) one.reset("over");
  assertEquals((await server.ended).code, 0);
  assertMatch(await server.logTail(), /all workers have ended/);
});

Deno.test("the server before goes on with callers while its successor has no agent", async () => {
  await using stage = await TunnelProcesses.open();
  const old = stage.start(TWO);
  await workersOf(old);
  const agent = await stage.launchAgent("--agent-id=late");
  await stage.untilEachWorkerHas(1, 2);
  const young = stage.start("--replace", TWO);
  await old.untilPrinted(/gets ready to take over/);
  agent.child.signal("SIGSTOP");
  await old.untilPrinted(/accepts agents; agents here go there/);
  // Those that do not come are waited for 5 s, once there is one.
  await new Promise((resolve) => setTimeout(resolve, 7_000));
  assertEquals(/took over from/.test(await young.logTail()), false);
  agent.child.signal("SIGCONT");
  await young.untilPrinted(/took over from process/);
  (await stage.hold("grpc")).reset("it is served");
});
