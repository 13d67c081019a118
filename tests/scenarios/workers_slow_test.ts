/**
 * Several workers of one program, as real processes, with conduits held and
 * dials running.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { Workspace } from "../support/program/workspace.ts";
import type { ConduitProbe } from "../support/memory/conduit_probe.ts";
import type { SteadyRequests } from "../support/peers/steady_requests.ts";
import { ServerStage } from "../support/rigs/server_stage.ts";
import { byWorker, workersOf } from "../support/rigs/workers.ts";
import { eventually } from "../support/watch/patience.ts";

const TWO = "--workers=2";

async function metric(stage: ServerStage, series: string) {
  return [...await byWorker(`${stage.healthUrl}/metrics`, series)];
}

const until = (isSo: () => Promise<boolean>) => eventually("it comes", isSo);

async function assertNoneFailed(requests: SteadyRequests): Promise<void> {
  const { answered, failures } = await requests.stop();
  assertEquals(Object.fromEntries(failures), {}, `${answered} were answered`);
  assert(answered > 20, `only ${answered} were asked`);
}

/** An agent is linked to each of two workers. */
async function untilLinked(stage: ServerStage): Promise<void> {
  await until(async () => {
    const links = await metric(stage, LINKS);
    return JSON.stringify(links) === "[[0,1],[1,1]]";
  });
}

const LINKS = "konnectivity_network_proxy_server_ready_backend_connections";

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
  await using stage = new ServerStage(await Workspace.make());
  const server = stage.start(TWO);
  const [, second] = await workersOf(server);
  await stage.addAgents(1);
  await untilLinked(stage);
  const held: ConduitProbe[] = [];
  for (let count = 0; count < 16; count++) {
    held.push(await stage.connect(count % 2 === 0 ? "grpc" : "http-connect"));
  }
  Deno.kill(second!, "SIGKILL");
  await server.untilPrinted(/worker 1 .* has ended \(SIGKILL\): the conn/);
  const requests = [stage.requests("grpc"), stage.requests("http-connect")];
  const left = await alive(held);
  assert(left > 0 && left < 16, `${left} of 16 go on`);
  await server.untilPrinted(/worker 1 runs again \(process \d+\)/);
  await untilLinked(stage);
  for (const one of requests) await one.more(40);
  for (const one of requests) await assertNoneFailed(one);
  assertEquals(await metric(stage, "tunnel_worker_restarts_total"), [[
    undefined,
    1,
  ]]);
  for (const one of held) one.reset("over");
});

Deno.test("SIGTERM drains all workers, SIGHUP reaches all, and they answer as one", async () => {
  await using stage = new ServerStage(await Workspace.make());
  const server = stage.start(TWO);
  await workersOf(server);
  await stage.addAgents(1);
  await untilLinked(stage);
  assertMatch(await stage.readiness(), /^200/);
  const held: ConduitProbe[] = [];
  for (let count = 0; count < 8; count++) {
    held.push(await stage.connect("grpc"));
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
  assertMatch(await stage.readiness(), /^500 the server is stopping/);
  assertEquals(await alive(held), 8);
  for (const one of held) one.reset("over");
  assertEquals((await server.ended).code, 0);
  assertMatch(await server.logTail(), /all workers have ended/);
});

Deno.test("the server before goes on with callers while its successor has no agent", async () => {
  await using stage = new ServerStage(await Workspace.make());
  const old = stage.start(TWO);
  await workersOf(old);
  const agent = await stage.launch("--agent-id=late");
  await untilLinked(stage);
  const young = stage.start("--replace", TWO);
  await old.untilPrinted(/gets ready to take over/);
  agent.child.signal("SIGSTOP");
  await old.untilPrinted(/accepts agents; agents here go there/);
  // Those that do not come are waited for 5 s, once there is one.
  await new Promise((resolve) => setTimeout(resolve, 7_000));
  assertEquals(/took over from/.test(await young.logTail()), false);
  agent.child.signal("SIGCONT");
  await young.untilPrinted(/took over from process/);
  (await stage.connect("grpc")).reset("it is served");
});

for (const [before, after] of [[1, 2], [2, 1], [2, 2]]) {
  Deno.test(`${before} workers are replaced by ${after} without refusing a dial`, async () => {
    await using stage = new ServerStage(await Workspace.make());
    const old = stage.start(`--workers=${before}`);
    await old.untilReady(`${stage.healthUrl}/healthz`);
    await stage.addAgents(2);
    const held = [
      await stage.connect("grpc"),
      await stage.connect("http-connect"),
    ];
    const requests = [stage.requests("grpc"), stage.requests("http-connect")];
    for (const one of requests) await one.more(20);
    const young = stage.start("--replace", `--workers=${after}`);
    await young.untilPrinted(/took over from process/);
    await old.untilPrinted(/handed over to process/);
    for (const one of requests) await one.more(40);
    for (const one of requests) await assertNoneFailed(one);
    assertEquals(await alive(held), 2);
    for (const one of held) one.reset("over");
    assertEquals((await old.ended).code, 0);
  });
}
