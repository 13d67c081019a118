/**
 * Several workers of one program when something goes wrong, as real processes.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { programWords } from "../support/program/program.ts";
import { mustGoOn, TunnelProcesses } from "../support/rigs/tunnel_processes.ts";
import { workersOf } from "../support/rigs/workers.ts";
import { eventually } from "../support/watch/patience.ts";

const TWO = "--workers=2";

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
  await using stage = await TunnelProcesses.open();
  const { server } = await stage.linkedWorkers();
  const held = [await stage.hold("grpc"), await stage.hold("grpc")];
  server.signal("SIGKILL");
  for (const worker of [0, 1]) {
    await untilWorkersSay(
      server,
      new RegExp(`the parent process has ended.*worker=${worker}`),
    );
  }
  await mustGoOn(...held);
  for (const worker of [0, 1]) {
    await untilWorkersSay(server, new RegExp(`has ended worker=${worker}`));
  }
  // Nothing of it is left at the ports.
  const next = stage.start(TWO);
  await workersOf(next);
});

Deno.test("a frozen worker costs new callers nothing once it is found out", async () => {
  await using stage = await TunnelProcesses.open();
  const { server, pids: [, second] } = await stage.linkedWorkers();
  Deno.kill(second!, "SIGSTOP");
  try {
    await server.untilPrinted(/worker 1 .* does not answer: others accept/);
    const requests = stage.requests("http-connect");
    await requests.more(40);
    await requests.mustBeAnswered(40);
    assertMatch(await stage.server.readiness(), /^200/);
  } finally {
    Deno.kill(second!, "SIGCONT");
  }
  await server.untilPrinted(/worker 1 answers again/);
});

Deno.test({
  name: "a worker is started again when nothing is left of what was unpacked",
  // From source nothing is.
  ignore: programWords().length > 1,
  async fn() {
    await using stage = await TunnelProcesses.open();
    const [cache, file] = ["cache", "tunnel"].map((name) =>
      stage.workspace.path(name)
    ) as [string, string];
    const [program, ...words] = stage.server.command(TWO);
    await Deno.symlink(program!, file);
    const server = stage.server.run([
      ...["env", `TUNNEL_CACHE_DIR=${cache}`, file],
      ...words,
    ]);
    const [first, second] = await workersOf(server);
    await Deno.remove(cache, { recursive: true });
    await Deno.remove(file);
    Deno.kill(second!, "SIGKILL");
    await server.untilPrinted(/worker 1 cannot be started: .*; trying again/);
    await Deno.symlink(program!, file);
    await server.untilPrinted(/worker 1 runs again/);
    assertEquals((await server.logTail()).includes(`process ${first}`), false);
  },
});

Deno.test("SIGHUP while the second worker starts ends no program", async () => {
  await using stage = await TunnelProcesses.open();
  const server = stage.start(TWO);
  await server.untilPrinted(/server started/);
  const hangUps = setInterval(() => server.signal("SIGHUP"), 5);
  try {
    await workersOf(server);
  } finally {
    clearInterval(hangUps);
  }
});

Deno.test("what keeps the first worker from starting is said once, with its exit code", async () => {
  await using stage = await TunnelProcesses.open();
  using taken = Deno.listen({
    hostname: "127.0.0.1",
    port: stage.server.agentPort,
  });
  const server = stage.start(TWO);
  assertEquals((await server.ended).code, 1);
  const said = await server.logTail();
  assertEquals(said.match(/change --agent-port/g)?.length, 1, said);
  assert(taken.addr);
  const wrong = stage.start(TWO, "--mode=odd");
  assertEquals((await wrong.ended).code, 2);
});

Deno.test("workers where sockets are the platform's end with 2, in words", async () => {
  await using stage = await TunnelProcesses.open();
  const server = stage.server.run([
    ...["env", "TUNNEL_SOCKETS=platform"],
    ...stage.server.command(TWO),
  ]);
  assertEquals((await server.ended).code, 2);
  const words = /Cannot use --workers=2: sockets are the platform's here/;
  assertMatch(await server.logTail(), words);
});
