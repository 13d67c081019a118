/**
 * One version takes the place of another while it runs, by `tunnel upgrade` and
 * by `--replace`: nobody is refused, and what is held stays.
 */

import { assertEquals, assertMatch } from "@std/assert";
import { freePort } from "../support/program/ports.ts";
import { commandOf } from "../support/program/tunnel.ts";
import { askEcho, SteadyRequests } from "../support/peers/steady_requests.ts";
import type { Processes } from "../support/rigs/processes.ts";
import { ProxyStage } from "../support/rigs/proxy_stage.ts";
import { mustGoOn, TunnelProcesses } from "../support/rigs/tunnel_processes.ts";
import { workersOf } from "../support/rigs/workers.ts";
import { commandOfVersion, PAIRS, type Version } from "./versions.ts";

/** `asker` upgrades whoever is at a handover socket to `version`. */
async function upgrade(
  stage: Processes,
  asker: Version,
  version: Version,
  at: string,
): Promise<void> {
  const [file] = await commandOfVersion(version);
  const ask = await commandOfVersion(asker);
  const { code, text } = await stage.upgrade(file!, at, [], ask);
  assertEquals(code, 0, text);
  const was = /^(?:server|agent|proxy): was \d\S* \(process \d+\), is \d\S* \(/;
  assertMatch(text, was);
}

for (const [first, then] of PAIRS) {
  Deno.test(`versions: server and agent that are ${first} are upgraded to ${then}`, async () => {
    await using stage = await TunnelProcesses.open();
    const places = ["server", "agent"].map((name) =>
      stage.workspace.path(`${name}.handover`)
    );
    const [server, agent] = places.map((place) => `--handover-socket=${place}`);
    stage.server.program = await commandOf(first, "server");
    await stage.listening(server!);
    const flags = ["--agent-id=a", "--drain-timeout=5m", agent!];
    await stage.addAgent(first, flags);
    const requests = [stage.requests("grpc"), stage.requests("http-connect")];
    const held = [];
    // Either version of the command: people have both files on that day.
    for (const asker of [first, then]) {
      const place = places[asker === first ? 0 : 1]!;
      held.push(await stage.hold("grpc"));
      held.push(await stage.hold("http-connect"));
      for (const one of requests) await one.more(10);
      await upgrade(stage, asker, then, place);
      for (const one of requests) await one.more(10);
    }
    await mustGoOn(...held);
    for (const one of requests) await one.mustBeAnswered(40);
    // The new one's log is where the old one's was.
    const log = await Deno.readTextFile(stage.server.child.logFile);
    assertMatch(log, /upgrade: starts \/.*\n(.*\n)*.*took over from process/);
  });

  Deno.test(`versions: server and agent that are ${then} take the place of ${first}: --replace`, async () => {
    await using stage = await TunnelProcesses.open();
    const healthPort = freePort();
    const flags = [
      "--v=1",
      "--agent-id=a",
      "--drain-timeout=5m",
      `--health-server-port=${healthPort}`,
    ];
    stage.server.program = await commandOf(first, "server");
    const old = await stage.listening();
    const { child: oldAgent } = await stage.launchAgentOf(first, flags);
    await oldAgent.untilReady(`http://127.0.0.1:${healthPort}/readyz`);
    const held = await stage.hold("grpc");
    const requests = stage.requests("grpc");
    await requests.more(20);
    stage.server.program = await commandOf(then, "server");
    const young = stage.start("--replace");
    await young.untilPrinted(/took over from process/);
    await requests.more(20);
    const replacing = [...flags, "--replace"];
    const { child } = await stage.launchAgentOf(then, replacing);
    await child.untilPrinted(/took over from process/);
    await requests.more(20);
    await mustGoOn(held);
    await requests.mustBeAnswered(40);
    assertEquals((await old.ended).code, 0);
  });
}

for (const [first, then] of PAIRS) {
  Deno.test(`versions: two workers that are ${first} are replaced by ${then}, and these upgraded back`, async () => {
    await using stage = await TunnelProcesses.open();
    const place = stage.workspace.path("server.handover");
    const flags = ["--workers=2", `--handover-socket=${place}`];
    stage.server.program = await commandOf(first, "server");
    const old = stage.start(...flags);
    await workersOf(old);
    await stage.addAgents(2);
    await stage.untilEachWorkerHas(2, 2);
    const held = [await stage.hold("grpc")];
    const requests = [stage.requests("grpc"), stage.requests("http-connect")];
    for (const one of requests) await one.more(20);
    stage.server.program = await commandOf(then, "server");
    const young = stage.start(...flags, "--replace");
    await young.untilPrinted(/took over from process/);
    held.push(await stage.hold("http-connect"));
    for (const one of requests) await one.more(20);
    await upgrade(stage, then, first, place);
    held.push(await stage.hold("grpc"));
    for (const one of requests) await one.more(20);
    await mustGoOn(...held);
    for (const one of requests) await one.mustBeAnswered(40);
    for (const { ended } of [old, young]) assertEquals((await ended).code, 0);
  });
}

Deno.test("versions: a proxy that is older is upgraded to ours and back", async () => {
  await using stage = await ProxyStage.open();
  const place = stage.workspace.path("proxy.handover");
  const nothing = ["--address-file=none", "--catalog-copies=none"];
  stage.program = await commandOfVersion("older", "proxy", ...nothing);
  const proxy = stage.start(`--handover-socket=${place}`);
  await proxy.untilReady(stage.readyUrl);
  const requests = new SteadyRequests(askEcho(stage.port));
  for (const version of ["ours", "older"] as const) {
    await requests.more(20);
    await upgrade(stage, "ours", version, place);
  }
  await requests.more(20);
  await requests.mustBeAnswered(40);
  await proxy.ended;
});
