/**
 * The zip for Windows, by Wine: a Debian that debootstrap has made runs its
 * `tunnel.cmd`, and with it Deno for Windows, as a node of a server on Linux.
 *
 * Whatever Wine starts ends with the namespaces that this runs in.
 *
 * @module
 */

import { assertEquals, assertMatch } from "@std/assert";
import { eventually } from "../../tests/support/watch/patience.ts";
import { Tally } from "../../tests/support/watch/tally.ts";
import { Connection, said } from "./said.ts";
import { debianRoot, overlay } from "./systemd_machine.ts";

/** Deno needs a newer Wine than Debian 12 has. */
export function wineRoot(): Promise<string> {
  return debianRoot("trixie", ["wine64", "wine"]);
}

const NODE = "win";
const SERVER_PORT = 8_091;
const HEALTH_PORT = 8_093;
const TARGET_PORT = 7_000;
const LINK_MS = 30_000;

/** Of each process of Wine. */
const ENVIRONMENT = [
  ...["HOME=/root", "PATH=/usr/bin:/bin"],
  ...["WINEDEBUG=-all", "XDG_RUNTIME_DIR=/tmp"],
];

/** A machine that has the zip unpacked. */
class WindowsMachine {
  #started = 0;

  private constructor(private readonly root: string) {}

  /** @param folder Where what is written goes; empty. */
  static async make(
    base: string,
    folder: string,
    zip: string,
  ): Promise<WindowsMachine> {
    const root = await overlay(base, folder);
    await said(["mount", "--rbind", "/dev", `${root}/dev`]);
    await said(["mount", "-t", "proc", "proc", `${root}/proc`]);
    await said(["python3", "-m", "zipfile", "-e", zip, `${root}/zip`]);
    const [{ name } = { name: "" }] = Deno.readDirSync(`${root}/zip`);
    await Deno.rename(`${root}/zip/${name}`, `${root}/opt/tunnel`);
    return new WindowsMachine(root);
  }

  /** Its output is a file: Wine's server keeps pipes open when it has ended. */
  start(...words: readonly string[]): Running {
    const output = `/output-${this.#started++}`;
    const script =
      'cd /opt/tunnel && exec wine cmd /c tunnel.cmd "$@" >"$0" 2>&1';
    const [program = "", ...args] = this.#inside(
      ...["sh", "-c", script, output, ...words],
    );
    const std = { stdin: "null", stdout: "null", stderr: "null" } as const;
    const child = new Deno.Command(program, { args, ...std }).spawn();
    const text = () => Deno.readTextFileSync(`${this.root}${output}`);
    return { ended: child.status.then(({ code }) => code), text };
  }

  /** Ends all that runs there, at once. */
  async cutOff(): Promise<void> {
    await said(this.#inside("wineserver", "--kill"));
  }

  /** @param wanted How it has to end. */
  async said(
    words: readonly string[],
    wanted: number,
    pattern: RegExp,
  ): Promise<void> {
    const { ended, text } = this.start(...words);
    const code = await ended;
    assertEquals(code, wanted, text());
    assertMatch(text(), pattern);
  }

  #inside(...words: readonly string[]): string[] {
    return [
      "/usr/sbin/chroot",
      this.root,
      "env",
      "-i",
      ...ENVIRONMENT,
      ...words,
    ];
  }
}

interface Running {
  /** Its exit code. */
  readonly ended: Promise<number>;
  text(): string;
}

/** The server of the same release. */
class LinuxServer {
  #child: Deno.ChildProcess | undefined;

  constructor(
    private readonly program: string,
    private readonly folder: string,
  ) {}

  get socket(): string {
    return `${this.folder}/server/frontend.sock`;
  }

  command(...words: readonly string[]): string[] {
    return [this.program, ...words, `--state-dir=${this.folder}/server`];
  }

  start(): void {
    const [program = "", ...args] = this.command(
      ...["server", "--v=0", "--agent-bind-address=127.0.0.1"],
      ...[
        `--agent-port=${SERVER_PORT}`,
        `--policy-file=${this.folder}/policy.yaml`,
      ],
    );
    const std = { stdin: "null", stdout: "null", stderr: "inherit" } as const;
    this.#child = new Deno.Command(program, { args, ...std }).spawn();
  }

  async kill(): Promise<void> {
    this.#child?.kill("SIGKILL");
    await this.#child?.status;
  }

  async token(): Promise<string> {
    const text = await said(this.command("token", "create", `--node=${NODE}`));
    return /tnl1\.\S+/.exec(text)![0];
  }

  dial(): Connection {
    const [program = "", ...args] = [
      ...[this.program, "dial", `127.0.0.1:${TARGET_PORT}`, `--node=${NODE}`],
      `--server=unix:${this.socket}`,
    ];
    const std = { stdin: "piped", stdout: "piped", stderr: "inherit" } as const;
    return new Connection(new Deno.Command(program, { args, ...std }).spawn());
  }

  /** Settles when the server that runs now says so of the node. */
  async isLinked(wanted: boolean): Promise<void> {
    await eventually(`the node is ${wanted ? "on" : "off"}line`, async () => {
      const list = await said(this.command("node", "list")).catch(() => "");
      return (wanted ? /win.*online/ : /win.*offline/).test(list);
    }, LINK_MS);
  }
}

/**
 * @param folder Empty.
 * @param files A root with Wine, the zip, and the program for Linux.
 */
export async function windows(
  folder: string,
  [base = "", zip = "", program = ""]: readonly string[],
): Promise<number> {
  const tally = new Tally();
  await said(["ip", "link", "set", "lo", "up"]);
  const echo = Deno.listen({ hostname: "127.0.0.1", port: TARGET_PORT });
  (async () => {
    for await (const conn of echo) {
      conn.readable.pipeTo(conn.writable).catch(() => {});
    }
  })();
  const machine = await WindowsMachine.make(base, folder, zip);
  const server = new LinuxServer(program, folder);
  await Deno.writeTextFile(
    `${folder}/policy.yaml`,
    `dials: [{node: ${NODE}, nodes: [${NODE}], allow: ["tcp:127.0.0.1:*"]}]\n`,
  );
  const steps = stepsOf(machine, server);
  for (const [name, step] of Object.entries(steps)) {
    await tally.run(name, step);
    if (tally.failed > 0) break;
  }
  echo.close();
  return tally.end();
}

/** In their order: each goes on from where the last one has ended. */
function stepsOf(
  machine: WindowsMachine,
  server: LinuxServer,
): Record<string, () => Promise<void>> {
  let agent: Running | undefined;
  return {
    "Wine starts the zip for Windows": () =>
      machine.said(["version"], 0, /^tunnel 0\.1\.[^]*windows-msvc/m),
    "a mistake ends with its exit code there": () =>
      machine.said(["agent", "--nonsense"], 2, /Unknown flag --nonsense/),
    "what needs unix sockets says so, and makes nothing": async () => {
      await machine.said(["server"], 2, /^.*there are none on Windows.*\r?\n$/);
      await machine.said(["demo"], 1, /^.*there are none on Windows.*\r?\n$/);
      await machine.said(["upgrade", "x"], 1, /Linux alone/);
    },
    "an agent joins there, and links": async () => {
      server.start();
      await eventually(
        "the server serves",
        () =>
          Deno.stat(server.socket)
            .then(() => true, () => false),
        LINK_MS,
      );
      agent = machine.start(
        ...["agent", `--server=127.0.0.1:${SERVER_PORT}`],
        ...[`--node=${NODE}`, `--join=${await server.token()}`],
      );
      await server.isLinked(true);
    },
    "bytes go there and back, and an end is an end": async () => {
      const connection = server.dial();
      await connection.exchange("to a node on Windows\n");
      await connection.close();
    },
    "status and doctor find it without a socket": async () => {
      await machine.said(["status"], 0, /^agent win {2}ready/);
      await machine.said(["doctor", "agent"], 0, /agent +process \d+ runs/);
      // On all addresses, of which Windows has IPv4's elsewhere than IPv6's.
      const ready = await fetch(`http://127.0.0.1:${HEALTH_PORT}/readyz`);
      assertEquals(await ready.text(), "ok");
    },
    "a node on Windows forwards through the tunnel": () => forwards(machine),
    "it links again to a server that was killed": async () => {
      await server.kill();
      server.start();
      await server.isLinked(true);
      await server.dial().exchange("once more\n");
    },
    "a new authority reaches it: its files are replaced": async () => {
      await said(server.command("ca", "rotate", "--wait"));
      assertEquals(
        /not supported|error|Cannot (write|keep)/i.exec(agent!.text()),
        null,
      );
    },
    "without power for a moment it comes back as the same node": async () => {
      await machine.cutOff();
      await agent!.ended;
      await server.isLinked(false);
      machine.start("agent");
      await server.isLinked(true);
      await server.dial().exchange("and again\n");
    },
  };
}

async function forwards(machine: WindowsMachine): Promise<void> {
  const port = TARGET_PORT + 1;
  machine.start("forward", `${port}:127.0.0.1:${TARGET_PORT}@${NODE}`);
  const connection = await connected(port);
  await connection.write(new TextEncoder().encode("out and in\n"));
  await connection.closeWrite();
  const text = await new Response(connection.readable).text();
  assertEquals(text, "out and in\n");
}

/** Settles when something listens there. */
async function connected(port: number): Promise<Deno.TcpConn> {
  let conn: Deno.TcpConn | undefined;
  await eventually("it listens", async () => {
    conn = await Deno.connect({ port }).catch(() => undefined);
    return conn !== undefined;
  }, LINK_MS);
  return conn!;
}
