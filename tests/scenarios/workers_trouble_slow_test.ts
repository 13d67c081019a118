/**
 * Several workers of one program when something goes wrong, as real processes.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { Workspace } from "../support/program/workspace.ts";
import { FakeSystemd } from "../support/peers/fake_systemd.ts";
import { ServerStage } from "../support/rigs/server_stage.ts";
import { byWorker, workersOf } from "../support/rigs/workers.ts";
import { eventually } from "../support/watch/patience.ts";

const TWO = "--workers=2";

async function linked(stage: ServerStage): Promise<void> {
  const series = "konnectivity_network_proxy_server_ready_backend_connections";
  await eventually("each worker has the agent", async () => {
    const links = await byWorker(`${stage.healthUrl}/metrics`, series);
    return links.get(0) === 1 && links.get(1) === 1;
  }, 60_000);
}

/** The same as `untilPrinted`, of a program whose first process is gone. */
async function untilWorkersSay(
  { logFile }: { readonly logFile: string },
  pattern: RegExp,
): Promise<void> {
  await eventually(
    `they print ${pattern}`,
    async () => pattern.test(await Deno.readTextFile(logFile)),
    60_000,
  );
}

Deno.test("without their parent workers finish what they carry, and end", async () => {
  await using stage = new ServerStage(await Workspace.make());
  const server = stage.start(TWO);
  await workersOf(server);
  await stage.addAgents(1);
  await linked(stage);
  const held = [await stage.connect("grpc"), await stage.connect("grpc")];
  server.signal("SIGKILL");
  for (const worker of [0, 1]) {
    await untilWorkersSay(
      server,
      new RegExp(`the parent process has ended.*worker=${worker}`),
    );
  }
  for (const one of held) {
    one.send("still");
    await one.received(5);
    one.reset("over");
  }
  for (const worker of [0, 1]) {
    await untilWorkersSay(server, new RegExp(`has ended worker=${worker}`));
  }
  // Nothing of it is left at the ports.
  const next = stage.start(TWO);
  await workersOf(next);
});

Deno.test("a frozen worker costs new callers nothing once it is found out", async () => {
  await using stage = new ServerStage(await Workspace.make());
  const server = stage.start(TWO);
  const [, second] = await workersOf(server);
  await stage.addAgents(1);
  await linked(stage);
  Deno.kill(second!, "SIGSTOP");
  try {
    await server.untilPrinted(/worker 1 .* does not answer: others accept/);
    const requests = stage.requests("http-connect");
    await requests.more(40);
    const { failures } = await requests.stop();
    assertEquals(Object.fromEntries(failures), {});
    assertMatch(await stage.readiness(), /^200/);
  } finally {
    Deno.kill(second!, "SIGCONT");
  }
  await server.untilPrinted(/worker 1 answers again/);
});

Deno.test("what keeps the first worker from starting is said once, with its exit code", async () => {
  await using stage = new ServerStage(await Workspace.make());
  using taken = Deno.listen({ hostname: "127.0.0.1", port: stage.agentPort });
  const server = stage.start(TWO);
  assertEquals((await server.ended).code, 1);
  const said = await server.logTail();
  assertEquals(said.match(/change --agent-port/g)?.length, 1, said);
  assert(taken.addr);
  const wrong = stage.start(TWO, "--mode=odd");
  assertEquals((await wrong.ended).code, 2);
});

for (
  const [words, flags, environment] of [
    [/--workers.* saw "0".*wanted a whole number from 1 to 64/, [
      "--workers=0",
    ]],
    [/--workers.*wanted a whole number from 1 to 64, or auto/, [
      "--workers=65",
    ]],
    [
      /Cannot use --workers=2: sockets are the platform's here/,
      [TWO],
      "platform",
    ],
  ] as const
) {
  Deno.test(`wrong use of workers ends with 2: ${words.source}`, async () => {
    await using stage = new ServerStage(await Workspace.make());
    const prefix = environment === undefined
      ? []
      : ["env", `TUNNEL_SOCKETS=${environment}`];
    const server = stage.run([...prefix, ...stage.command(...flags)]);
    assertEquals((await server.ended).code, 2);
    assertMatch(await server.logTail(), words);
  });
}

Deno.test("no dial is refused while systemd restarts a server of two workers", async () => {
  await using stage = new ServerStage(await Workspace.make());
  using manager = new FakeSystemd(stage.workspace.path("notify"));
  const start = () =>
    stage.run(manager.passing(manager.kept, stage.command(TWO)));
  const old = start();
  await manager.until(/^READY=1/);
  await stage.addAgents(1);
  await linked(stage);
  const requests = stage.requests("grpc");
  await requests.more(20);
  old.signal("SIGTERM");
  await manager.until(/^FDSTORE=1/);
  assertEquals((await old.ended).code, 0);
  manager.clear();
  const young = start();
  await young.untilPrinted(/sockets were kept open: .*unix/);
  await manager.until(/^READY=1/);
  await requests.more(20);
  const { failures, answered } = await requests.stop();
  // Two processes start one after the other: that may take its time.
  const refused = [...failures].filter(([why]) => why !== "no answer in time");
  assertEquals(Object.fromEntries(refused), {}, `${answered} were answered`);
});
