/**
 * `tunnel upgrade` of real processes: a new program that comes to nothing changes
 * nothing, and a service manager and the log are told of one that does. That nobody
 * is refused is in `tests/versions`.
 */

import { assertEquals, assertMatch } from "@std/assert";
import { ourCommand } from "../support/program/tunnel.ts";
import { Workspace } from "../support/program/workspace.ts";
import { FakeSystemd } from "../support/peers/fake_systemd.ts";
import { Processes } from "../support/rigs/processes.ts";
import { mustGoOn, TunnelProcesses } from "../support/rigs/tunnel_processes.ts";
import { eventually, patience } from "../support/watch/patience.ts";

/** A program that answers as ours does, and then does `rest` when it is started. */
async function program(
  { workspace }: Processes,
  name: string,
  rest = "",
): Promise<string> {
  const file = workspace.path(name);
  const ours = ourCommand().map((word) => `'${word}'`).join(" ");
  const look = `case $1 in version|upgrade) exec ${ours} "$@" ;; esac\n`;
  const script = `#!/bin/sh\n${look}${rest}\nexec ${ours} "$@"\n`;
  await Deno.writeTextFile(file, script, { mode: 0o755 });
  return file;
}

Deno.test("a new program that comes to nothing is ended, and the old one goes on", async () => {
  await using stage = await TunnelProcesses.open();
  const server = stage.workspace.path("server.handover");
  await stage.listening("--v=1", `--handover-socket=${server}`);
  await stage.addAgents(1);
  const held = await stage.hold("grpc");
  const cases: readonly [file: string, flags: string[], words: RegExp][] = [
    [
      await program(stage, "crashes", "echo boom: no such disk >&2; exit 3"),
      [],
      /process \d+ goes on: .* ended with exit code 3; its last words: boom: no such disk/,
    ],
    [
      await program(stage, "hangs", "exec sleep infinity"),
      // Longer than it takes to look at the file, as busy as it is here.
      [`--timeout=${Math.ceil(patience(6_000))}ms`],
      /goes on: .* it was not ready within \d+ s/,
    ],
    // It is ours, and cannot use what the old one has told it.
    [
      await program(stage, "wrong", 'set -- "$@" --no-such-flag'),
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
    const { code, text } = await stage.upgrade(file, server, flags);
    assertEquals(code, 1, text);
    assertMatch(text, words);
  }
  const full = stage.workspace.path("full");
  const script = "#!/bin/sh\nfail() { echo tunnel: $1 >&2; exit 1; }\n" +
    "echo >/dev/full || fail 'Cannot unpack into /x: the disk is full'\n";
  await Deno.writeTextFile(full, script, { mode: 0o755 });
  const unpacked = await stage.upgrade(full, server);
  assertEquals(unpacked.code, 1);
  assertMatch(
    unpacked.text,
    /`version` ends with exit code 1; .*disk is full/s,
  );
  const plain = stage.workspace.path("plain");
  await Deno.writeTextFile(plain, script, { mode: 0o644 });
  assertMatch((await stage.upgrade(plain, server)).text, /chmod \+x/);
  const nobody = stage.workspace.path("nobody.handover");
  assertMatch((await stage.upgrade("/bin/true", nobody)).text, /no tunnel/);
  const good = await program(stage, "good");
  assertMatch(
    (await stage.upgrade(good, nobody)).text,
    /No server, agent or proxy was found that runs here/,
  );
  await mustGoOn(held, await stage.hold("grpc"));
});

Deno.test("a service manager hears which process is the service from now on", async () => {
  await using stage = await TunnelProcesses.open();
  using manager = new FakeSystemd(stage.workspace.path("notify"));
  const place = stage.workspace.path("server.handover");
  const command = stage.server.command("--v=1", `--handover-socket=${place}`);
  const server = stage.server.run(manager.passing([], command));
  await manager.until(/^READY=1/);
  await server.untilPrinted(/server started/);
  const file = await program(stage, "tunnel-new");
  const { code, text } = await stage.upgrade(file, place);
  assertEquals(code, 0, text);
  const [pid] = stage.successors;
  await manager.until(new RegExp(`^READY=1\nMAINPID=${pid}`));
});

Deno.test("workers of a new program write to the log of the old one", async () => {
  await using stage = await TunnelProcesses.open();
  const place = stage.workspace.path("server.handover");
  const handover = `--handover-socket=${place}`;
  const server = stage.start("--v=1", "--workers=2", handover);
  await server.untilPrinted(/workers started/);
  await eventually(
    "it offers what it has",
    () => Deno.stat(place).then(() => true, () => false),
  );
  const file = await program(stage, "tunnel-new");
  const { code, text } = await stage.upgrade(file, place);
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
  await using stage = new Processes(await Workspace.make());
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
  const place = stage.workspace.path("server.handover");
  const { code, text } = await stage.upgrade(file, place, [timeout]);
  assertEquals(code, 1);
  assertMatch(text, /`upgrade` was not answered within \d+ s/);
  const child = (await Deno.readTextFile(note)).trim();
  // It may be in the list until its new parent has looked.
  const stat = await Deno.readTextFile(`/proc/${child}/stat`).catch(() => "Z");
  assertMatch(stat, /Z/);
});
