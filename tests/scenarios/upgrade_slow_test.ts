/**
 * `tunnel upgrade` of real processes, with conduits held and requests running:
 * nobody is refused, and a new program that comes to nothing changes nothing.
 */

import { Processes, type ServerProcess } from "../support/rigs/processes.ts";
import { assertEquals, assertMatch } from "@std/assert";
import { freePort } from "../support/program/ports.ts";
import { ourCommand } from "../support/program/tunnel.ts";
import { runTunnel } from "../support/program/run.ts";
import { Workspace } from "../support/program/workspace.ts";
import { ConduitProbe } from "../support/memory/conduit_probe.ts";
import { FakeSystemd } from "../support/peers/fake_systemd.ts";
import { askEcho, SteadyRequests } from "../support/peers/steady_requests.ts";
import { eventually, patience } from "../support/watch/patience.ts";

/** Programs to upgrade to, and what runs. */
class Stage extends Processes {
  readonly port = this.echo();
  /** Started by those that they took over from. */
  readonly successors: number[] = [];
  readonly #handovers = new Map<string, string>();

  /** A program that answers as ours does, and then does `rest` when it is started. */
  async program(name: string, rest = ""): Promise<string> {
    const file = this.workspace.path(name);
    const ours = ourCommand().map((word) => `'${word}'`).join(" ");
    const look = `case $1 in version|upgrade) exec ${ours} "$@" ;; esac\n`;
    const script = `#!/bin/sh\n${look}${rest}\nexec ${ours} "$@"\n`;
    await Deno.writeTextFile(file, script, { mode: 0o755 });
    return file;
  }

  handover(name: string): string {
    const path = this.#handovers.get(name) ??
      this.workspace.path(`${name}.handover`);
    this.#handovers.set(name, path);
    return path;
  }

  /** @returns What it printed, and how it ended. */
  async upgrade(file: string, name: string, ...flags: readonly string[]) {
    const { code, stdout, stderr } = await runTunnel([
      ...["upgrade", file, `--handover-socket=${this.handover(name)}`],
      ...flags,
    ]);
    const text = stdout + stderr;
    const [, pid] = /is [^ ]* \(process (\d+)\)/.exec(text) ?? [];
    if (pid !== undefined) this.successors.push(Number(pid));
    return { code, text };
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    for (const pid of this.successors) {
      try {
        Deno.kill(pid, "SIGKILL");
      } catch {
        // It has ended by itself.
      }
    }
    await super[Symbol.asyncDispose]();
  }
}

/** What is held is let go by the test, however busy the machine is. */
const GRACE = "5m";

/** A server with an agent; `server.dial` is a caller's, over a connection of its own. */
async function startTunnel(stage: Stage): Promise<ServerProcess> {
  const server = stage.addServer(
    "",
    ...["--mode=auto", "--v=1", `--graceful-shutdown-timeout=${GRACE}`],
    `--handover-socket=${stage.handover("server")}`,
  );
  await server.start();
  stage.agentAt(
    [server.address],
    ...["--v=1", "--agent-id=a", `--drain-timeout=${GRACE}`],
    `--handover-socket=${stage.handover("agent")}`,
  );
  await server.child.untilReady(`${server.healthUrl}/readyz`);
  return server;
}

/** A conduit to the echo. */
async function dial(
  stage: Stage,
  server: ServerProcess,
): Promise<ConduitProbe> {
  const target = { protocol: "tcp", address: `127.0.0.1:${stage.port}` };
  return new ConduitProbe(await server.dial("grpc", { target }));
}

async function startProxy(stage: Stage): Promise<number> {
  const [port, adminPort] = [freePort(), freePort()];
  const config = stage.workspace.path("services.json");
  const ports = [{ port: 80, listen: `127.0.0.1:${port}` }];
  const endpoints = [{ address: "127.0.0.1", port: stage.port }];
  await Deno.writeTextFile(
    config,
    JSON.stringify({ services: [{ name: "web", ports, endpoints }] }),
  );
  const proxy = stage.launch(
    "proxy",
    ourCommand(
      ...["proxy", `--config=${config}`, `--admin-port=${adminPort}`],
      `--handover-socket=${stage.handover("proxy")}`,
    ),
  );
  await proxy.untilReady(`http://127.0.0.1:${adminPort}/readyz`);
  return port;
}

Deno.test("server, agent and proxy go on as another program, and nobody is refused", async () => {
  await using stage = new Stage(await Workspace.make());
  const file = await stage.program("tunnel-new");
  const server = await startTunnel(stage);
  const proxied = await startProxy(stage);
  const held = await dial(stage, server);
  const dials = new SteadyRequests(async () => {
    const conduit = await dial(stage, server);
    conduit.send("hello");
    await conduit.received(5);
    conduit.reset("asked enough");
  }, 2);
  const services = new SteadyRequests(askEcho(proxied));
  await Promise.all([dials.more(20), services.more(20)]);
  for (const name of ["server", "agent", "proxy"]) {
    const { code, text } = await stage.upgrade(file, name);
    assertEquals(code, 0, text);
    assertMatch(
      text,
      new RegExp(
        `^${name}: was \\d[^ ]* \\(process \\d+\\), is \\d[^ ]* \\(process \\d+\\)`,
      ),
    );
    await Promise.all([dials.more(20), services.more(20)]);
  }
  for (const requests of [dials, services]) await requests.mustBeAnswered(60);
  held.send("still");
  await held.mustReceive(5);
  held.reset("over");
  // The new one's log is where the old one's was.
  const log = await Deno.readTextFile(server.child.logFile);
  assertMatch(log, /upgrade: starts \/.*\n(.*\n)*.*took over from process/);
  // And it can be upgraded itself.
  const again = await stage.upgrade(file, "server");
  assertEquals(again.code, 0, again.text);
});

Deno.test("a new program that comes to nothing is ended, and the old one goes on", async () => {
  await using stage = new Stage(await Workspace.make());
  const server = await startTunnel(stage);
  const held = await dial(stage, server);
  const cases: readonly [file: string, flags: string[], words: RegExp][] = [
    [
      await stage.program("crashes", "echo boom: no such disk >&2; exit 3"),
      [],
      /process \d+ goes on: .* ended with exit code 3; its last words: boom: no such disk/,
    ],
    [
      await stage.program("hangs", "exec sleep infinity"),
      // Longer than it takes to look at the file, as busy as it is here.
      [`--timeout=${Math.ceil(patience(6_000))}ms`],
      /goes on: .* it was not ready within \d+ s/,
    ],
    // It is ours, and cannot use what the old one has told it.
    [
      await stage.program("wrong", 'set -- "$@" --no-such-flag'),
      [],
      /goes on: .* exit code 2; its last words: .*--no-such-flag/,
    ],
    ["/bin/true", [], /it is no tunnel/],
    [
      stage.workspace.path("crashes.not"),
      [],
      /Cannot upgrade to .*no such file/,
    ],
  ];
  for (const [file, flags, words] of cases) {
    const { code, text } = await stage.upgrade(file, "server", ...flags);
    assertEquals(code, 1, text);
    assertMatch(text, words);
  }
  const full = stage.workspace.path("full");
  const script = "#!/bin/sh\nfail() { echo tunnel: $1 >&2; exit 1; }\n" +
    "echo >/dev/full || fail 'Cannot unpack into /x: the disk is full'\n";
  await Deno.writeTextFile(full, script, { mode: 0o755 });
  const unpacked = await stage.upgrade(full, "server");
  assertEquals(unpacked.code, 1);
  assertMatch(
    unpacked.text,
    /`version` ends with exit code 1; .*disk is full/s,
  );
  const plain = stage.workspace.path("plain");
  await Deno.writeTextFile(plain, script, { mode: 0o644 });
  assertMatch((await stage.upgrade(plain, "server")).text, /chmod \+x/);
  assertMatch(
    (await stage.upgrade("/bin/true", "nobody")).text,
    /it is no tunnel/,
  );
  const good = await stage.program("good");
  assertMatch(
    (await stage.upgrade(good, "nobody")).text,
    /No server, agent or proxy was found that runs here/,
  );
  held.send("still");
  await held.mustReceive(5);
  const conduit = await dial(stage, server);
  conduit.reset("done");
  held.reset("done");
});

Deno.test("a service manager hears which process is the service from now on", async () => {
  await using stage = new Stage(await Workspace.make());
  using manager = new FakeSystemd(stage.workspace.path("notify"));
  const ports = ["agent", "health", "admin"]
    .map((name) => `--${name}-port=${freePort()}`);
  const server = stage.launch(
    "server",
    manager.passing(
      [],
      ourCommand(
        ...["server", ...ports, `--state-dir=${stage.workspace.path("state")}`],
        ...["--agent-bind-address=127.0.0.1", "--v=1"],
        `--handover-socket=${stage.handover("server")}`,
      ),
    ),
  );
  await manager.until(/^READY=1/);
  await server.untilPrinted(/server started/);
  const file = await stage.program("tunnel-new");
  const { code, text } = await stage.upgrade(file, "server");
  assertEquals(code, 0, text);
  const [pid] = stage.successors;
  await manager.until(new RegExp(`^READY=1\nMAINPID=${pid}`));
});

Deno.test("workers of a new program write to the log of the old one", async () => {
  await using stage = new Stage(await Workspace.make());
  const ports = ["agent", "health", "admin"]
    .map((name) => `--${name}-port=${freePort()}`);
  const server = stage.launch(
    "server",
    ourCommand(
      ...["server", ...ports, `--state-dir=${stage.workspace.path("state")}`],
      ...["--agent-bind-address=127.0.0.1", "--v=1", "--workers=2"],
      `--handover-socket=${stage.handover("server")}`,
    ),
  );
  await server.untilPrinted(/workers started/);
  await eventually(
    "it offers what it has",
    () => Deno.stat(stage.handover("server")).then(() => true, () => false),
  );
  const { code, text } = await stage.upgrade(
    await stage.program("tunnel-new"),
    "server",
  );
  assertEquals(code, 0, text);
  await server.ended;
  const [pid] = stage.successors;
  Deno.kill(pid!, "SIGTERM");
  const said =
    /all workers drain([^]*server has ended worker=){2}[^]*have ended/;
  let log = "";
  await eventually("all workers have ended", async () => {
    log = await Deno.readTextFile(server.logFile);
    return said.test(log);
  });
});

Deno.test("a file whose child keeps its output holds nobody up, and leaves no child", async () => {
  await using stage = new Stage(await Workspace.make());
  const file = stage.workspace.path("hangs");
  const note = stage.workspace.path("child");
  const ours = ourCommand().map((word) => `'${word}'`).join(" ");
  await Deno.writeTextFile(
    file,
    `#!/bin/sh\ncase $1 in version) exec ${ours} "$@" ;; esac\n` +
      `sleep 600 &\necho $! >'${note}'\nwait\n`,
    { mode: 0o755 },
  );
  const timeout = `--timeout=${Math.ceil(patience(6_000))}ms`;
  const { code, text } = await stage.upgrade(file, "server", timeout);
  assertEquals(code, 1);
  assertMatch(text, /`upgrade` was not answered within \d+ s/);
  const child = (await Deno.readTextFile(note)).trim();
  // It may be in the list until its new parent has looked.
  const stat = await Deno.readTextFile(`/proc/${child}/stat`).catch(() => "Z");
  assertMatch(stat, /Z/);
});
