/**
 * Restarts of a server and of an agent, of real processes, with conduits held and
 * dials running: no dial is refused.
 */

import { assertEquals, assertMatch } from "@std/assert";
import { freePort } from "../support/program/ports.ts";
import { NodeStage } from "../support/rigs/node_stage.ts";
import { mustGoOn, TunnelProcesses } from "../support/rigs/tunnel_processes.ts";
import { FakeSystemd } from "../support/peers/fake_systemd.ts";

/** Of one worker each, or of more. */
const RESTARTS: readonly (readonly [
  how: string,
  before: number,
  after: number,
])[] = [
  ["SIGTERM", 1, 1],
  ["--replace", 1, 1],
  ["--replace", 1, 2],
  ["--replace", 2, 1],
  ["--replace", 2, 2],
];

for (const [how, before, after] of RESTARTS) {
  Deno.test(`a server is restarted without refusing a dial: ${how}, workers: ${before}, then ${after}`, async () => {
    await using stage = await TunnelProcesses.open();
    const old = await stage.listening(`--workers=${before}`);
    await stage.addAgents(2);
    const held = [
      await stage.hold("grpc"),
      await stage.hold("http-connect"),
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
      assertMatch(
        await stage.server.readiness(),
        /^500 the server is stopping/,
      );
      for (const one of requests) await one.more(20);
    }
    const young = stage.start(
      ...how === "--replace" ? [how] : [],
      `--workers=${after}`,
    );
    await young.untilPrinted(/took over from process/);
    await old.untilPrinted(/handed over to process/);
    assertMatch(await stage.server.readiness(), /^200/);
    for (const one of requests) await one.more(40);
    for (const one of requests) await one.mustBeAnswered(40);
    await mustGoOn(...held);
    assertEquals((await old.ended).code, 0);
    assertMatch(await old.logTail(), /the server has ended/);
  });
}

for (const workers of [1, 2]) {
  Deno.test(`no dial is refused while systemd stops a server and starts another, workers: ${workers}`, async () => {
    await using stage = await TunnelProcesses.open();
    using manager = new FakeSystemd(stage.workspace.path("notify"));
    const start = () => {
      const command = stage.server.command(`--workers=${workers}`);
      return stage.server.run(manager.passing(manager.kept, command));
    };
    const old = start();
    await manager.until(/^READY=1/);
    await stage.addAgents(1);
    await stage.untilEachWorkerHas(1, workers);
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
    for (const one of requests) {
      const { failures, answered } = await one.stop();
      // Two processes start one after the other: that may take its time.
      if (workers > 1) failures.delete("no answer in time");
      assertEquals(
        Object.fromEntries(failures),
        {},
        `${answered} were answered`,
      );
    }
  });
}

for (const how of ["--replace", "SIGTERM"]) {
  Deno.test(`the only agent is restarted without refusing a dial: ${how}`, async () => {
    await using stage = await TunnelProcesses.open();
    await stage.listening();
    const healthPort = freePort();
    const flags = [
      "--v=1",
      "--agent-id=the-one",
      `--health-server-port=${healthPort}`,
    ];
    const readyUrl = `http://127.0.0.1:${healthPort}/readyz`;
    const { child: old } = await stage.launchAgent(...flags);
    await old.untilReady(readyUrl);
    const held = await stage.hold("grpc");
    const requests = stage.requests("grpc");
    await requests.more(20);
    if (how === "SIGTERM") {
      old.signal("SIGTERM");
      await old.untilPrinted(/SIGTERM: draining, \d+ connections/);
      const answer = await fetch(readyUrl);
      assertMatch(await answer.text(), /the agent is stopping/);
    }
    const more = how === "--replace" ? [how] : [];
    const { child: young } = await stage.launchAgent(...flags, ...more);
    await young.untilPrinted(/took over from process/);
    await old.untilPrinted(/handed over to process/);
    await young.untilReady(readyUrl);
    await requests.more(60);
    await requests.mustBeAnswered(60);
    await mustGoOn(held);
    assertEquals((await old.ended).code, 0);
    assertMatch(await old.logTail(), /the agent has ended/);
  });
}

Deno.test("a second server on one state directory is told who has it", async () => {
  await using stage = await NodeStage.open();
  const first = stage.server.child;
  const second = stage.addSibling();
  const refused = second.run(second.command());
  assertEquals((await refused.ended).code, 1);
  assertMatch(
    await refused.logTail(),
    new RegExp(
      `runs here already \\(process ${first.pid}\\): take its place with ` +
        "--replace, or give this one a --state-dir and ports of its own",
    ),
  );
  // What was left by one that was killed is nobody's.
  await first.stop("SIGKILL");
  await second.start();
});
