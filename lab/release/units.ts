/**
 * The units under a real systemd: verified, boot, reload, upgrade, crash, a loop
 * that stands still, stop, and gone again. By the `.deb`, and by the single file.
 *
 * Needs root, debootstrap and overlayfs.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { eventually } from "../../tests/support/watch/patience.ts";
import { Tally } from "../../tests/support/watch/tally.ts";
import { Connection } from "./said.ts";
import { debianRoot, SystemdMachine } from "./systemd_machine.ts";

/** What `systemd-analyze security` may say of a unit. */
const EXPOSURE_MAX = 3;

const [SERVER, AGENT] = ["tunnel-server.service", "tunnel-agent.service"];
const PORT = 7_000;

const ECHO = `for await (const conn of Deno.listen({ hostname: "127.0.0.1", ` +
  `port: ${PORT} })) conn.readable.pipeTo(conn.writable).catch(() => {});`;

class Scene {
  readonly #children: Deno.ChildProcess[] = [];

  /** What is open over a change. */
  held: Connection | undefined;
  /** The `.deb` of two versions, or the file of both. */
  files: readonly string[] = [];

  constructor(readonly machine: SystemdMachine, readonly tally: Tally) {}

  pid(unit: string): Promise<string> {
    return this.machine.property(unit, "MainPID");
  }

  start(words: readonly string[]): Deno.ChildProcess {
    const [command = "", ...args] = words;
    const child = new Deno.Command(command, {
      args,
      ...{ stdin: "piped", stdout: "piped", stderr: "null" },
    }).spawn();
    this.#children.push(child);
    return child;
  }

  echo(): void {
    this.start(this.machine.nearby([Deno.execPath(), "eval", ECHO]));
  }

  connect(): Connection {
    return new Connection(this.start(this.machine.words([
      ...["tunnel", "dial", `127.0.0.1:${PORT}`, "--node=edge"],
    ])));
  }

  /** A connection, a line through it, and its end. */
  async dial(line: string): Promise<void> {
    const connection = this.connect();
    await connection.exchange(line);
    await connection.close();
  }

  async online(): Promise<void> {
    await eventually("the node is online", async () => {
      const { text } = await this.machine.tried("tunnel node list");
      return /edge.*online|online.*edge/.test(text);
    }, 30_000);
  }

  /** What happens to a process that ends by itself, and how fast. */
  async replaced(unit: string, before: string): Promise<string> {
    const beganMs = performance.now();
    await eventually(`${unit} is there again`, async () => {
      const now = await this.machine.property(unit, "MainPID");
      const state = await this.machine.property(unit, "ActiveState");
      return now !== before && now !== "0" && state === "active";
    }, 30_000);
    return `${Math.round(performance.now() - beganMs)} ms`;
  }

  end(): void {
    for (const child of this.#children) {
      try {
        child.kill("SIGKILL");
      } catch {
        // It has ended.
      }
    }
  }
}

async function joined(
  scene: Scene,
  tunnel = "tunnel",
  port = 8_091,
): Promise<void> {
  const { machine } = scene;
  const made = await machine.said(`${tunnel} token create --json`);
  const { token } = JSON.parse(made.split("\n")[0]!);
  const text = await machine.said(
    `${tunnel} install agent --server=127.0.0.1:${port} --node=edge --join`,
    token,
  );
  assertMatch(text, /tunnel-agent\.service: started/);
  await scene.online();
}

type Step = readonly [string, (scene: Scene) => Promise<void>];

/** By the `.deb`. */
const PACKAGE: readonly Step[] = [
  [
    "the .deb's units are verified, and exposed little",
    async (scene) => {
      const { machine, tally, files } = scene;
      await machine.said("dpkg --install", files[0]!);
      for (const kind of ["server", "agent", "proxy"]) {
        const unit = `tunnel-${kind}.service`;
        const path = `/usr/lib/systemd/system/${unit}`;
        const words = await machine.said(
          "systemd-analyze verify --man=no",
          path,
        );
        assertEquals(words.trim(), "");
        const seen = await machine.said("systemd-analyze security", unit);
        const [, level] = /exposure level for .*: ([\d.]+)/.exec(seen) ?? [];
        tally.note(`${unit}: exposure ${level}`);
        assert(Number(level) <= EXPOSURE_MAX, `${unit}: ${level}`);
      }
    },
  ],
  ["two commands make a server and an agent services", async (scene) => {
    const { machine } = scene;
    const text = await machine.said("tunnel install server");
    assertMatch(text, /tunnel-server\.service: started/);
    await joined(scene);
    await scene.dial("hello\n");
  }],
  [
    "they run as their own user, and are called tunnel",
    async (scene) => {
      const { machine } = scene;
      const list = await machine.said("ps -o user=,comm= -C tunnel");
      assertEquals(list.trim().split(/\s+/), [
        "tunnel",
        "tunnel",
        "tunnel",
        "tunnel",
      ]);
      assertEquals(
        await machine.property("tunnel-server.socket", "ActiveState"),
        "active",
      );
      const { isGood } = await machine.tried(
        "su -s /bin/sh nobody -c",
        "cat /etc/tunnel/agent.env",
      );
      assert(!isGood, "everybody may read the token");
    },
  ],
  ["a reload keeps the process and its connections", async (scene) => {
    const { machine } = scene;
    scene.held = scene.connect();
    await scene.held.exchange("before\n");
    const before = [await scene.pid(SERVER), await scene.pid(AGENT)];
    await machine.said("systemctl reload", SERVER, AGENT);
    assertEquals([await scene.pid(SERVER), await scene.pid(AGENT)], before);
    await scene.held!.exchange("reloaded\n");
  }],
  ["the next .deb upgrades both under systemd's eyes", async (scene) => {
    const { machine, files } = scene;
    const before = [await scene.pid(SERVER), await scene.pid(AGENT)];
    const words = await machine.said("dpkg --install", files[1]!);
    assertMatch(words, /server: was .*is 0\.1\.999/);
    assertMatch(words, /agent: was .*is 0\.1\.999/);
    await scene.held!.exchange("upgraded\n");
    await scene.dial("new\n");
    await scene.held!.close();
    for (const [index, unit] of [SERVER, AGENT].entries()) {
      await scene.replaced(unit, before[index]!);
      assertEquals(await machine.property(unit, "NRestarts"), "0");
      await eventually(
        "the process before has ended",
        async () => !(await machine.tried("kill -0", before[index]!)).isGood,
        30_000,
      );
      assertEquals(await machine.property(unit, "ActiveState"), "active");
    }
  }],
  ["a process that crashes is started again", async (scene) => {
    const { machine, tally } = scene;
    for (const unit of [SERVER, AGENT]) {
      const before = await scene.pid(unit);
      await machine.said("kill -KILL", before);
      tally.note(
        `${unit}: up again ${await scene.replaced(unit, before)} after a crash`,
      );
    }
    await scene.online();
    await scene.dial("after crashes\n");
  }],
  [
    "a loop that stands still is ended by the watchdog",
    async (scene) => {
      const { machine, tally } = scene;
      const folder = `/run/systemd/system/${SERVER}.d`;
      await machine.said("mkdir -p", folder);
      await machine.said(
        "sh -c",
        `printf '[Service]\\nWatchdogSec=3s\\n' >${folder}/watch.conf`,
      );
      await machine.said("systemctl daemon-reload");
      await machine.said("systemctl restart", SERVER);
      await new Promise((done) => setTimeout(done, 6_000));
      assertEquals(await machine.property(SERVER, "NRestarts"), "0");
      const before = await scene.pid(SERVER);
      await machine.said("kill -STOP", before);
      tally.note(
        `${SERVER}: up again ${await scene.replaced(
          SERVER,
          before,
        )} after it stood still (3 s)`,
      );
      assertMatch(
        await machine.said("journalctl -u", SERVER, "-o", "cat"),
        /Watchdog timeout/,
      );
      await scene.online();
      await scene.dial("after a stand\n");
    },
  ],
  ["a restart refuses nobody, other flags count", async (scene) => {
    const { machine } = scene;
    const before = await scene.pid(SERVER);
    const restarted = machine.said("tunnel install server --server-id=renamed");
    await scene.dial("meanwhile\n");
    assertMatch(await restarted, /restarted/);
    assert(await scene.pid(SERVER) !== before);
    assertMatch(
      await machine.said("systemctl cat", SERVER),
      /--server-id=renamed/,
    );
    await scene.online();
    await scene.dial("as another\n");
  }],
  ["both are there after a boot, and end when told", async (scene) => {
    const { machine } = scene;
    await machine.halt();
    scene.end();
    await machine.boot();
    scene.echo();
    await scene.online();
    await scene.dial("after a boot\n");
    await machine.said("systemctl stop", AGENT);
    assertEquals(await machine.property(AGENT, "Result"), "success");
    await machine.said("systemctl start", AGENT);
    await scene.online();
  }],
  ["uninstalling and purging leave nothing", async (scene) => {
    const { machine } = scene;
    await machine.said("tunnel uninstall agent");
    await machine.said("tunnel uninstall server --purge");
    await machine.said("dpkg --purge tunnel");
    const left = await machine.said(
      "sh -c",
      "ls -d /etc/systemd/system/tunnel* /etc/tunnel /var/lib/tunnel /usr/lib/tunnel 2>/dev/null || :",
    );
    assertEquals(left, "");
  }],
];

/** By the single file. */
const FILE: readonly Step[] = [
  ["the single file makes itself a service, too", async (scene) => {
    const { machine, files } = scene;
    const text = await machine.said(
      files[0]!,
      "install",
      "server",
      "--agent-port=443",
    );
    assertMatch(text, /started/);
    assertEquals(
      await machine.property("tunnel-server.socket", "Listen"),
      "[::]:443 (Stream)",
    );
    await machine.said("ln -s /usr/local/bin/tunnel /usr/bin/tunnel");
    await joined(scene, "/usr/local/bin/tunnel", 443);
    await scene.dial("by a file\n");
  }],
  ["and is upgraded by the next one", async (scene) => {
    const { machine, files } = scene;
    scene.held = scene.connect();
    await scene.held.exchange("before\n");
    await machine.said(
      "install -m 755",
      files[1]!,
      "/usr/local/bin/tunnel.next",
    );
    await machine.said("mv /usr/local/bin/tunnel.next /usr/local/bin/tunnel");
    for (const kind of ["server", "agent"]) {
      const before = await machine.property(
        `tunnel-${kind}.service`,
        "MainPID",
      );
      const words = await machine.said(
        "tunnel upgrade /usr/local/bin/tunnel --command",
        kind,
      );
      assertMatch(words, /is 0\.1\.999/);
      await scene.replaced(`tunnel-${kind}.service`, before);
    }
    await scene.held!.exchange("after\n");
    await scene.online();
    await scene.dial("new\n");
  }],
  ["a flag that is wrong changes nothing", async (scene) => {
    const { machine } = scene;
    const { isGood, text } = await machine.tried(
      "tunnel install agent --sever=x",
    );
    assert(!isGood);
    assertMatch(text, /did you mean --server/);
    assertEquals(await machine.property(AGENT, "ActiveState"), "active");
  }],
];

/**
 * All of it, in a mount namespace that ends with its process.
 *
 * @param files The `.deb` of two versions, and the file of both.
 */
export async function units(
  folder: string,
  files: readonly string[],
): Promise<number> {
  const tally = new Tally();
  const machine = await SystemdMachine.make(await debianRoot(), folder);
  const scene = new Scene(machine, tally);
  try {
    const inside = await Promise.all(files.map(async (from, index) => {
      const path = `/opt/${index}${from.slice(from.lastIndexOf("/") + 1)}`;
      await Deno.copyFile(from, `${machine.root}${path}`);
      await Deno.chmod(`${machine.root}${path}`, 0o755);
      return path;
    }));
    await machine.boot();
    scene.echo();
    scene.files = inside.slice(0, 2);
    for (const [name, step] of PACKAGE) {
      await tally.run(name, () => step(scene));
    }
    // Not in /opt, where a file may stay.
    await machine.said("mv", ...inside.slice(2), "/home");
    scene.files = inside.slice(2).map((path) => path.replace("/opt", "/home"));
    for (const [name, step] of FILE) await tally.run(name, () => step(scene));
  } finally {
    if (tally.failed > 0) {
      const log = "journalctl --no-pager -n 60 -o short";
      tally.note((await machine.tried(log)).text);
    }
    scene.end();
    await machine.end();
  }
  return tally.end();
}
