/**
 * Restarts as operators make them, of real processes, with connections held and
 * requests running: nobody is refused.
 */

import { assertEquals, assertMatch } from "@std/assert";
import { ask } from "../support/rigs/proxy_rig.ts";
import { ProxyStage } from "../support/rigs/proxy_stage.ts";
import { FakeSystemd } from "../support/peers/fake_systemd.ts";
import { askEcho, SteadyRequests } from "../support/peers/steady_requests.ts";
import { DatagramPeer } from "../support/peers/datagrams.ts";

Deno.test("a proxy that was told to end serves until another has started beside it", async () => {
  await using stage = await ProxyStage.open();
  const old = stage.start();
  await old.untilReady(stage.readyUrl);
  const held = await stage.connect();
  assertEquals(await ask(held, "held"), "held");
  const requests = new SteadyRequests(askEcho(stage.port));
  old.signal("SIGTERM");
  await old.untilPrinted(/SIGTERM: draining, \d+ connections?, at most 20 s/);
  assertMatch(await stage.readiness(), /^503 .*the proxy is stopping/s);
  await requests.more(50);
  const young = stage.start();
  await young.untilPrinted(/took over from process/);
  await old.untilPrinted(/handed over to process \d+: \d+ connections? may/);
  assertMatch(await stage.readiness(), /^200/);
  await requests.more(100);
  assertEquals(await ask(held, "still"), "still");
  assertEquals(old.hasEnded, false);
  held.close();
  assertEquals((await old.ended).code, 0);
  assertMatch(await old.logTail(), /ended: nothing runs any more/);
  await requests.more(50);
  await requests.mustBeAnswered(100);
});

Deno.test("a proxy is replaced while it runs, and only by who means to", async () => {
  await using stage = await ProxyStage.open();
  await using client = await DatagramPeer.open();
  const old = stage.start();
  await old.untilReady(stage.readyUrl);
  const held = await stage.connect();
  assertEquals(await ask(held, "held"), "held");
  assertEquals(await client.ask("x", stage.udpPort), "x");
  const requests = new SteadyRequests(askEcho(stage.port));

  const second = stage.start();
  assertEquals((await second.ended).code, 1);
  assertMatch(
    await second.logTail(),
    new RegExp(
      `A tunnel proxy runs here already \\(process ${old.pid}\\): take its ` +
        "place with --replace, or give this one an --admin-port of its own",
    ),
  );
  // Another source of its own says nothing, so it is never ready.
  const broken = stage.start("--replace", "--services-url=http://127.0.0.1:9/");
  await broken.untilPrinted(/nothing is known of it yet/);
  await broken.stop();
  await old.untilPrinted(/ended before it took over; this one goes on/);
  assertMatch(await stage.readiness(), /^200/);

  for (let count = 0, before = old; count < 2; count++) {
    const young = stage.start("--replace");
    await young.untilPrinted(/took over from process/);
    await before.untilPrinted(/handed over to process/);
    assertEquals(await client.ask("x", stage.udpPort), "x");
    assertMatch(await stage.readiness(), /^200/);
    await requests.more(100);
    // The first one still has a connection.
    if (before !== old) assertEquals((await before.ended).code, 0);
    before = young;
  }
  assertEquals(await ask(held, "still"), "still");
  held.close();
  assertEquals((await old.ended).code, 0);
  await requests.mustBeAnswered(100);
});

Deno.test("a proxy that drains lets go of UDP ports when its successor is gone", async () => {
  await using stage = await ProxyStage.open();
  await using client = await DatagramPeer.open();
  const old = stage.start();
  await old.untilReady(stage.readyUrl);
  const held = await stage.connect();
  assertEquals(await ask(held, "held"), "held");
  assertEquals(await client.ask("x", stage.udpPort), "x");
  const young = stage.start("--replace");
  await old.untilPrinted(/handed over to process/);
  young.signal("SIGTERM");
  assertEquals((await young.ended).code, 0);
  const last = stage.start();
  await last.untilReady(stage.readyUrl);
  assertEquals(await client.ask("x", stage.udpPort), "x");
  assertEquals(await ask(held, "still"), "still");
  assertEquals(old.hasEnded, false);
  held.close();
  assertEquals((await old.ended).code, 0);
});

Deno.test("sockets that systemd has are used, and nobody is refused between two processes", async () => {
  await using stage = await ProxyStage.open();
  using manager = new FakeSystemd(stage.workspace.path("notify"));
  const socket = manager.listen(stage.port);
  const start = () =>
    stage.startBy(
      manager.passing([socket], stage.command("--drain-timeout=1s")),
    );
  const old = start();
  await manager.until(/^READY=1/);
  await old.untilPrinted(/sockets were kept open: tcp 127.0.0.1:\d+/);
  const held = await stage.connect();
  assertEquals(await ask(held, "held"), "held");
  const requests = new SteadyRequests(askEcho(stage.port));
  await requests.more(50);
  old.signal("SIGTERM");
  await manager.until(/^STOPPING=1/);
  await manager.until(/^FDSTORE=1/);
  manager.discard();
  assertEquals((await old.ended).code, 0);
  held.close();
  manager.clear();
  start();
  await manager.until(/^READY=1/);
  await requests.more(50);
  await requests.mustBeAnswered(100);
});

Deno.test("sockets are given to systemd at the end, which has them for the next process", async () => {
  await using stage = await ProxyStage.open();
  using manager = new FakeSystemd(stage.workspace.path("notify"));
  const start = () =>
    stage.startBy(manager.passing(manager.kept, stage.command()));
  const old = start();
  await manager.until(/^READY=1/);
  const requests = new SteadyRequests(askEcho(stage.port));
  await requests.more(50);
  old.signal("SIGTERM");
  await manager.until(/^FDSTORE=1\nFDNAME=tunnel/);
  assertEquals((await old.ended).code, 0);
  manager.clear();
  const young = start();
  await young.untilPrinted(/sockets were kept open: .*udp/);
  await manager.until(/^READY=1/);
  await manager.until(/^FDSTOREREMOVE=1\nFDNAME=tunnel$/);
  await requests.more(50);
  await requests.mustBeAnswered(100);
  await young.untilReady(stage.readyUrl);
});

Deno.test("where sockets are the platform's, nothing is promised", async () => {
  await using stage = await ProxyStage.open();
  const platform = ["env", "TUNNEL_SOCKETS=platform"];
  const old = stage.startBy([...platform, ...stage.command()]);
  await old.untilReady(stage.readyUrl);
  const young = stage.startBy([...platform, ...stage.command("--replace")]);
  assertEquals((await young.ended).code, 2);
  assertMatch(
    await young.logTail(),
    /Cannot --replace: sockets are the platform's here, which cannot be handed/,
  );
  const beside = stage.startBy([...platform, ...stage.command()]);
  assertEquals((await beside.ended).code, 1);
  assertMatch(await beside.logTail(), /something listens there already/);
});
