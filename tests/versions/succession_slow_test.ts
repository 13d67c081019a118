/**
 * One version takes the place of another while it runs, by `tunnel upgrade` and
 * by `--replace`: nobody is refused, and what is held stays.
 */

import { Processes } from "../support/rigs/processes.ts";
import { assertEquals } from "@std/assert";
import { freePort } from "../support/program/ports.ts";
import { runToEnd } from "../support/program/run.ts";
import { commandOf } from "../support/program/tunnel.ts";
import { Workspace } from "../support/program/workspace.ts";
import { askEcho, SteadyRequests } from "../support/peers/steady_requests.ts";
import { ServerStage } from "../support/rigs/server_stage.ts";
import { workersOf } from "../support/rigs/workers.ts";
import { commandOfVersion, PAIRS, type Version } from "./versions.ts";

/** Ends processes that nobody here has started. */
class Successors implements Disposable {
  readonly #pids: number[] = [];

  /** `asker` upgrades the process at a handover socket to `version`. */
  async upgrade(asker: Version, version: Version, at: string): Promise<void> {
    const [file] = await commandOfVersion(version);
    const { code, stdout, stderr } = await runToEnd(
      await commandOfVersion(
        asker,
        ...["upgrade", file!, `--handover-socket=${at}`],
      ),
    );
    const text = stdout + stderr;
    assertEquals(code, 0, text);
    this.#pids.push(Number(/is [^ ]* \(process (\d+)\)/.exec(text)![1]));
  }

  [Symbol.dispose](): void {
    for (const pid of this.#pids) {
      try {
        Deno.kill(pid, "SIGKILL");
      } catch (error) {
        // It has ended by itself.
        if (!(error instanceof Deno.errors.NotFound)) throw error;
      }
    }
  }
}

for (const [first, then] of PAIRS) {
  Deno.test(`versions: server and agent that are ${first} are upgraded to ${then}`, async () => {
    await using stage = await ServerStage.open();
    using successors = new Successors();
    const places = ["server", "agent"].map((name) =>
      stage.workspace.path(`${name}.handover`)
    );
    const [server, agent] = places.map((place) => `--handover-socket=${place}`);
    const words = await commandOf(first, "server");
    const running = stage.server.run([
      ...words,
      ...stage.server.flags,
      server!,
    ]);
    await running.untilReady(`${stage.healthUrl}/healthz`);
    const launched = await stage.launchAgentOf(
      first,
      ...["--agent-id=a", "--drain-timeout=5m", agent!],
    );
    await launched.child.untilReady(`${launched.healthUrl}/readyz`);
    const requests = [stage.requests("grpc"), stage.requests("http-connect")];
    const held = [];
    // Either version of the command: people have both files on that day.
    for (const asker of [first, then]) {
      const place = places[asker === first ? 0 : 1]!;
      held.push(await stage.connect("grpc"));
      held.push(await stage.connect("http-connect"));
      for (const one of requests) await one.more(10);
      await successors.upgrade(asker, then, place);
      for (const one of requests) await one.more(10);
    }
    for (const one of held) {
      one.send("still");
      await one.mustReceive(5);
      one.reset("over");
    }
    for (const one of requests) await one.mustBeAnswered(40);
  });

  Deno.test(`versions: server and agent that are ${then} take the place of ${first}: --replace`, async () => {
    await using stage = await ServerStage.open();
    const healthPort = freePort();
    const flags = [
      "--v=1",
      "--agent-id=a",
      "--drain-timeout=5m",
      `--health-server-port=${healthPort}`,
    ];
    const oldWords = await commandOf(first, "server");
    const old = stage.server.run([...oldWords, ...stage.server.flags]);
    await old.untilReady(`${stage.healthUrl}/healthz`);
    const { child: oldAgent } = await stage.launchAgentOf(first, ...flags);
    await oldAgent.untilReady(`http://127.0.0.1:${healthPort}/readyz`);
    const held = await stage.connect("grpc");
    const requests = stage.requests("grpc");
    await requests.more(20);
    const words = await commandOf(then, "server");
    const young = stage.server.run([
      ...words,
      ...stage.server.flags,
      "--replace",
    ]);
    await young.untilPrinted(/took over from process/);
    await requests.more(20);
    const { child } = await stage.launchAgentOf(then, ...flags, "--replace");
    await child.untilPrinted(/took over from process/);
    await requests.more(20);
    held.send("still");
    await held.mustReceive(5);
    held.reset("over");
    await requests.mustBeAnswered(40);
    assertEquals((await old.ended).code, 0);
  });
}

for (const [first, then] of PAIRS) {
  Deno.test(`versions: two workers that are ${first} are replaced by ${then}, and these upgraded back`, async () => {
    await using stage = await ServerStage.open();
    using successors = new Successors();
    const place = stage.workspace.path("server.handover");
    const flags = [
      ...[...stage.server.flags, "--workers=2"],
      `--handover-socket=${place}`,
    ];
    const old = stage.server.run([
      ...await commandOf(first, "server"),
      ...flags,
    ]);
    await workersOf(old);
    await stage.addAgents(2);
    await stage.untilEachWorkerHas(2, 2);
    const held = [await stage.connect("grpc")];
    const requests = [stage.requests("grpc"), stage.requests("http-connect")];
    for (const one of requests) await one.more(20);
    const words = await commandOf(then, "server");
    const young = stage.server.run([...words, ...flags, "--replace"]);
    await young.untilPrinted(/took over from process/);
    held.push(await stage.connect("http-connect"));
    for (const one of requests) await one.more(20);
    await successors.upgrade(then, first, place);
    held.push(await stage.connect("grpc"));
    for (const one of requests) await one.more(20);
    for (const one of held) {
      one.send("still");
      await one.mustReceive(5);
      one.reset("over");
    }
    for (const one of requests) await one.mustBeAnswered(40);
    for (const { ended } of [old, young]) assertEquals((await ended).code, 0);
  });
}

Deno.test("versions: a proxy that is older is upgraded to ours and back", async () => {
  await using stage = new Processes(await Workspace.make());
  using successors = new Successors();
  const [port, adminPort] = [freePort(), freePort()];
  const [place, config] = ["proxy.handover", "services.json"]
    .map((name) => stage.workspace.path(name));
  const ports = [{ port: 80, listen: `127.0.0.1:${port}` }];
  const endpoints = [{ address: "127.0.0.1", port: stage.echo() }];
  await Deno.writeTextFile(
    config!,
    JSON.stringify({ services: [{ name: "web", ports, endpoints }] }),
  );
  const proxy = stage.launch(
    "proxy",
    await commandOfVersion(
      "older",
      ...["proxy", `--config=${config}`, `--admin-port=${adminPort}`],
      ...["--address-file=none", "--catalog-copies=none"],
      `--handover-socket=${place}`,
    ),
  );
  await proxy.untilReady(`http://127.0.0.1:${adminPort}/readyz`);
  const requests = new SteadyRequests(askEcho(port));
  for (const version of ["ours", "older"] as const) {
    await requests.more(20);
    await successors.upgrade("ours", version, place!);
  }
  await requests.more(20);
  await requests.mustBeAnswered(40);
  await proxy.ended;
});
