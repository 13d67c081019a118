/**
 * What the packaged file could not do although the sources could: a command that
 * lacks a right. Where `tunnel` of the documents does it, `docs-lines` shows it;
 * here is what needs neither root nor etcd.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { Child } from "../support/program/child.ts";
import { runTunnel } from "../support/program/run.ts";
import { ourCommand } from "../support/program/tunnel.ts";

/** Words of a failure for want of a right, or of a guard that caught it. */
const MISSING = /TUN907|did not give itself a right|--allow-|NotCapable/;

/** A server with a state of its own, and what is beside it. */
class Rig implements AsyncDisposable {
  readonly folder = Deno.makeTempDirSync({ prefix: "tunnel-" });
  readonly state = `${this.folder}/state`;
  readonly #children: Child[] = [];

  /** Starts a command that goes on, until it has printed `until`. */
  async start(until: RegExp, ...words: string[]): Promise<Child> {
    const logFile = `${this.folder}/${this.#children.length}.log`;
    const command = ourCommand(...words);
    const child = new Child({ name: words[0]!, command, logFile });
    this.#children.push(child);
    await child.untilPrinted(until);
    return child;
  }

  /** Runs a command to its end. */
  async run(
    words: readonly string[],
    env: Record<string, string> = {},
  ): Promise<{ readonly code: number; readonly said: string }> {
    const { code, stdout, stderr } = await runTunnel(words, { env });
    const said = stdout + stderr;
    assert(!MISSING.test(said), said);
    return { code, said };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children.toReversed()) {
      await child.stop();
      const log = await Deno.readTextFile(child.logFile);
      assert(!MISSING.test(log), log);
    }
    await Deno.remove(this.folder, { recursive: true });
  }
}

/** One that runs, with its ports wherever there is room. */
async function withServer(): Promise<Rig> {
  const rig = new Rig();
  await rig.start(
    /server started/,
    ...[
      "server",
      `--state-dir=${rig.state}`,
      `--uds-name=${rig.folder}/f.sock`,
    ],
    ...["--agent-port=0", "--health-port=0", "--admin-port=0"],
  );
  return rig;
}

Deno.test("token, node and ca ask a server that runs", async () => {
  await using rig = await withServer();
  const state = `--state-dir=${rig.state}`;
  const list = await rig.run(["node", "list", state]);
  assertEquals(list.code, 0);
  assertMatch(list.said, /^No nodes\./);
  const none = await rig.run(["node", "describe", "a", state]);
  assertEquals(none.code, 1);
  assertMatch(none.said, /never seen a node "a"/);
  const made = await rig.run(["token", "create", "--node=a", state]);
  assertMatch(made.said, /--join tnl1\./);
  assertMatch((await rig.run(["ca", "show", state])).said, /issues/);
});

Deno.test("token, node and ca go out to a state that is elsewhere", async () => {
  await using rig = new Rig();
  using closed = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = closed.addr;
  closed.close();
  const commands = [["token", "list"], ["node", "list"], ["ca", "show"]];
  // Each waits for its state as long as a server would.
  await Promise.all(commands.map(async (words) => {
    const { code, said } = await rig.run([
      ...words,
      `--state=etcd://127.0.0.1:${port}`,
      "--state-key-file=none",
      `--state-dir=${rig.state}`,
    ]);
    assertEquals(code, 1);
    assertMatch(said, /refused|nobody|nothing listens/i);
  }));
});

Deno.test("forward and proxy open their unix sockets", async () => {
  await using rig = await withServer();
  const [gateway, admin] = ["g.sock", "p.sock"].map((name) =>
    `${rig.folder}/${name}`
  );
  await rig.start(
    / -> /,
    ...["forward", `--frontend=unix:${gateway}`],
    `--server=unix:${rig.folder}/f.sock`,
  );
  assertEquals((await Deno.stat(gateway!)).isSocket, true);
  const services = `${rig.folder}/services.yaml`;
  await Deno.writeTextFile(services, "services: []\n");
  await rig.start(
    /proxy started[^]*admin API opened|admin API opened[^]*proxy started/,
    ...["proxy", `--config=${services}`, `--admin-socket=${admin}`],
    "--admin-port=0",
  );
  const asked = await rig.run(["status", `--proxy=unix:${admin}`]);
  assertEquals(asked.code, 0);
});

Deno.test("dashboard --open starts a browser", async () => {
  await using rig = await withServer();
  const opened = `${rig.folder}/opened`;
  await Deno.writeTextFile(
    `${rig.folder}/xdg-open`,
    `#!/bin/sh\necho "$1" >${opened}\nexit 1\n`,
    { mode: 0o755 },
  );
  const { said } = await rig.run(
    ["dashboard", "--open", `--state-dir=${rig.state}`],
    { PATH: `${rig.folder}:${Deno.env.get("PATH")}` },
  );
  assertMatch(said, /\/dashboard\/#code=/);
  assertMatch(await Deno.readTextFile(opened), /^http:\/\/127\.0\.0\.1:/);
});
