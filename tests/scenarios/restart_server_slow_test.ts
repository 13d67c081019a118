/**
 * Restarts of a server and of an agent, of real processes, with conduits held and
 * dials running: no dial is refused.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { Child } from "../support/program/child.ts";
import { freePort } from "../support/program/ports.ts";
import { ourCommand } from "../support/program/tunnel.ts";
import { Workspace } from "../support/program/workspace.ts";
import { ServerStage } from "../support/rigs/server_stage.ts";
import { FakeSystemd } from "../support/peers/fake_systemd.ts";
import { SteadyRequests } from "../support/peers/steady_requests.ts";

async function assertAllAnswered(requests: SteadyRequests): Promise<void> {
  const { answered, failures } = await requests.stop();
  assertEquals(Object.fromEntries(failures), {}, `${answered} were answered`);
  assert(answered > 40, `only ${answered} were asked`);
}

for (const how of ["--replace", "SIGTERM"]) {
  Deno.test(`a server is restarted without refusing a dial: ${how}`, async () => {
    await using stage = new ServerStage(await Workspace.make());
    const old = stage.start();
    await old.untilReady(`${stage.healthUrl}/healthz`);
    await stage.addAgents(2);
    const held = [
      await stage.connect("grpc"),
      await stage.connect("http-connect"),
    ];
    const requests = [stage.requests("grpc"), stage.requests("http-connect")];
    for (const one of requests) await one.more(20);
    if (how === "--replace") {
      const second = stage.start();
      assertEquals((await second.ended).code, 1);
      assertMatch(
        await second.logTail(),
        /A tunnel server runs here already \(process \d+\): take its place/,
      );
    } else {
      old.signal("SIGTERM");
      await old.untilPrinted(/SIGTERM: draining, \d+ connections/);
      assertMatch(await stage.readiness(), /^500 the server is stopping/);
      for (const one of requests) await one.more(20);
    }
    const young = stage.start(...how === "--replace" ? [how] : []);
    await young.untilPrinted(/took over from process/);
    await old.untilPrinted(/handed over to process/);
    assertMatch(await stage.readiness(), /^200/);
    for (const one of requests) await one.more(40);
    for (const one of requests) await assertAllAnswered(one);
    for (const one of held) {
      one.send("still");
      await one.mustReceive(5);
      one.reset("over");
    }
    assertEquals((await old.ended).code, 0);
    assertMatch(await old.logTail(), /the server has ended/);
  });
}

Deno.test("no dial is refused while systemd stops a server and starts the next one", async () => {
  await using stage = new ServerStage(await Workspace.make());
  using manager = new FakeSystemd(stage.workspace.path("notify"));
  const start = () => stage.run(manager.passing(manager.kept, stage.command()));
  const old = start();
  await manager.until(/^READY=1/);
  await stage.addAgents(1);
  const requests = [stage.requests("grpc"), stage.requests("http-connect")];
  for (const one of requests) await one.more(20);
  old.signal("SIGTERM");
  await manager.until(/^FDSTORE=1/);
  assertEquals((await old.ended).code, 0);
  manager.clear();
  const young = start();
  await young.untilPrinted(/sockets were kept open: .*unix/);
  await manager.until(/^READY=1/);
  for (const one of requests) await one.more(20);
  for (const one of requests) await assertAllAnswered(one);
});

for (const how of ["--replace", "SIGTERM"]) {
  Deno.test(`the only agent is restarted without refusing a dial: ${how}`, async () => {
    await using stage = new ServerStage(await Workspace.make());
    const server = stage.start();
    await server.untilReady(`${stage.healthUrl}/healthz`);
    const healthPort = freePort();
    const flags = [
      "--v=1",
      "--agent-id=the-one",
      `--health-server-port=${healthPort}`,
    ];
    const readyUrl = `http://127.0.0.1:${healthPort}/readyz`;
    const { child: old } = await stage.launch(...flags);
    await old.untilReady(readyUrl);
    const held = await stage.connect("grpc");
    const requests = stage.requests("grpc");
    await requests.more(20);
    if (how === "SIGTERM") {
      old.signal("SIGTERM");
      await old.untilPrinted(/SIGTERM: draining, \d+ connections/);
      const answer = await fetch(readyUrl);
      assertMatch(await answer.text(), /the agent is stopping/);
    }
    const more = how === "--replace" ? [how] : [];
    const { child: young } = await stage.launch(...flags, ...more);
    await young.untilPrinted(/took over from process/);
    await old.untilPrinted(/handed over to process/);
    await young.untilReady(readyUrl);
    await requests.more(60);
    await assertAllAnswered(requests);
    held.send("still");
    await held.mustReceive(5);
    held.reset("over");
    assertEquals((await old.ended).code, 0);
    assertMatch(await old.logTail(), /the agent has ended/);
  });
}

Deno.test("a second server on one state directory is told who has it", async () => {
  const workspace = await Workspace.make();
  const state = await Deno.makeTempDir();
  const start = (name: string, ...flags: string[]) =>
    new Child({
      name,
      command: ourCommand(
        "server",
        `--state-dir=${state}`,
        ...["agent", "health", "admin"].map((port) =>
          `--${port}-port=${freePort()}`
        ),
        ...flags,
      ),
      logFile: workspace.path(name),
    });
  const first = start("first");
  await first.untilPrinted(/server started/);
  const second = start("second");
  assertEquals((await second.ended).code, 1);
  assertMatch(
    await second.logTail(),
    new RegExp(
      `runs here already \\(process ${first.pid}\\): take its place with ` +
        "--replace, or give this one a --state-dir and ports of its own",
    ),
  );
  // What was left by one that was killed is nobody's.
  await first.stop("SIGKILL");
  const third = start("third");
  await third.untilPrinted(/server started/);
  await third.stop("SIGKILL");
  await Deno.remove(state, { recursive: true });
  await workspace.remove();
});
