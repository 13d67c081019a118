/**
 * The files of a release: they are the same from another folder with another
 * cache, and the `.deb` lives on a machine that has next to nothing: it is
 * installed, upgraded under a connection, and purged. Its units run under a real
 * systemd, the image in a real engine, and the zip for Windows by Wine. What is
 * for arm64 is made, too, and is what it says it is; nothing starts it here.
 *
 * Usage: `deno task lab release`. Needs root, dpkg, tar, debootstrap and podman.
 * Everything runs in namespaces of its own.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { eventually } from "../../tests/support/watch/patience.ts";
import { readTotal, Tally } from "../../tests/support/watch/tally.ts";
import { Connection, said } from "./said.ts";
import { buildImage, engineObstacle, image } from "./image.ts";
import { isForArm } from "./arm_files.ts";
import { debianRoot } from "./systemd_machine.ts";
import { units } from "./units.ts";
import { windows, wineRoot } from "./windows.ts";

/** What the program's script and those of the package call. */
const PROGRAMS = [
  ...["sh", "cat", "chmod", "grep", "gzip", "head", "id", "ls", "mkdir", "mv"],
  ...["rm", "sync", "tail", "uname"],
];

/** What the runtime and the program open, beside what programs are linked to. */
const LIBRARIES = ["libssl.so.3"];

/** Makes it in `root`, a folder that is there. Needs root. */
async function makeBareRoot(root: string): Promise<void> {
  for (
    const folder of [
      ...["bin", "usr/bin", "dev", "proc", "tmp", "root", "etc", "run"],
      ...["var/lib/dpkg/info", "var/lib/dpkg/updates"],
    ]
  ) await Deno.mkdir(`${root}/${folder}`, { recursive: true });
  for (const name of PROGRAMS) {
    const path = (await said(["sh", "-c", `command -v ${name}`])).trim();
    await copyWithLibraries(root, path, `/bin/${name}`);
  }
  // What the runtime of the package is linked to is what this one is.
  await copyLibraries(root, Deno.execPath());
  const cache = await said(["ldconfig", "-p"]);
  for (const name of LIBRARIES) {
    const path = new RegExp(`^\\s*${name} .*=> (\\S+)$`, "m").exec(cache)?.[1];
    if (path === undefined) throw new Error(`Cannot find ${name} here`);
    await copyWithLibraries(root, path, path);
  }
  for (const name of ["status", "available"]) {
    await Deno.writeTextFile(`${root}/var/lib/dpkg/${name}`, "");
  }
  await Deno.writeTextFile(
    `${root}/etc/passwd`,
    "root:x:0:0::/root:/bin/sh\n",
  );
  await Deno.writeTextFile(`${root}/etc/group`, "root:x:0:\n");
}

async function copyWithLibraries(
  root: string,
  from: string,
  to: string,
): Promise<void> {
  await copyTo(root, await Deno.realPath(from), to);
  await copyLibraries(root, from);
}

async function copyLibraries(root: string, from: string): Promise<void> {
  const linked = await said(["ldd", from]).catch(() => "");
  for (const [, path = ""] of linked.matchAll(/(?:=> )?(\/\S+) \(0x/g)) {
    await copyTo(root, await Deno.realPath(path), path);
  }
}

async function copyTo(root: string, from: string, to: string): Promise<void> {
  const folder = `${root}${to.slice(0, to.lastIndexOf("/"))}`;
  await Deno.mkdir(folder, { recursive: true });
  await Deno.copyFile(from, `${root}${to}`);
}

/** Set in the process that is inside of the namespaces: the folder of all. */
const INSIDE = "RELEASE_INSIDE";

const NEXT_VERSION = "0.1.999";

const DEB = /^tunnel_.*_amd64\.deb$/;
const PROGRAM = /^tunnel-[\d.]+-linux-x64$/;
const ZIP = /^tunnel-[\d.]+-windows-x64\.zip$/;

/** Makes a release of the clone in `folder`; gives its sums. */
async function release(
  folder: string,
  architectures: string,
  env: Record<string, string> = {},
): Promise<string> {
  const words = [Deno.execPath(), "task", "release", "--arch", architectures];
  await said(words, { cwd: folder, env });
  return await Deno.readTextFile(`${folder}/dist/SHA256SUMS`);
}

async function cloneTo(folder: string): Promise<void> {
  await said(["git", "clone", "--quiet", Deno.cwd(), folder]);
  // The runtime is 40 MB, and pinned.
  await said(["mkdir", "-p", `${folder}/.cache/packages`, ".cache/packages"]);
  await said(["cp", "-r", ".cache/packages", `${folder}/.cache/`]);
}

function fileOf(folder: string, wanted: RegExp): string {
  const found = [...Deno.readDirSync(`${folder}/dist`)]
    .find(({ name }) => wanted.test(name));
  if (found === undefined) throw new Error(`No ${wanted} in ${folder}`);
  return `${folder}/dist/${found.name}`;
}

/** Builds both versions, and goes on in namespaces. */
async function outside(): Promise<number> {
  const tally = new Tally();
  const folder = await Deno.makeTempDir();
  // Beside what follows: it waits for the network most of the time.
  const wine = wineRoot().then((root) => ({ root }), String);
  try {
    const [here, there] = [`${folder}/here`, `${folder}/down/there`];
    await tally.run("a release is the same, wherever it is made", async () => {
      await cloneTo(here);
      await cloneTo(there);
      const all = "x64,arm64,macos-x64,macos-arm64,windows-x64";
      const [sums, others] = await Promise.all([
        release(here, all),
        release(there, all, { DENO_DIR: `${folder}/deno` }),
      ]);
      assertMatch(sums, DEB_LINE);
      assertEquals(others, sums);
    });
    await tally.run(
      "what is for arm64 has the pinned runtime, for that processor",
      () => isForArm(here),
    );
    await tally.run("the next version is made", async () => {
      const path = `${there}/platform/process/version.ts`;
      const [source, changes] = [path, `${there}/CHANGELOG.md`];
      const text = await Deno.readTextFile(source);
      await Deno.writeTextFile(
        source,
        text.replace(/VERSION = "[^"]+"/, `VERSION = "${NEXT_VERSION}"`),
      );
      await Deno.remove(`${there}/dist`, { recursive: true });
      const log = await Deno.readTextFile(changes);
      await Deno.writeTextFile(changes, `${log}\n## ${NEXT_VERSION}\n`);
      await release(there, "x64");
    });
    if (tally.failed > 0) return tally.end();
    const files = [here, there].map((folder) => fileOf(folder, DEB));
    const programs = [here, there].map((folder) => fileOf(folder, PROGRAM));
    await goInside(tally, folder, ["package", ...files]);
    const made = await wine;
    if (typeof made === "string") tally.skip("the zip for Windows", made);
    else {
      const carried = [fileOf(here, ZIP), programs[0]!];
      await goInside(tally, folder, ["windows", made.root, ...carried]);
    }
    // There is no network inside.
    await tally.run("a Debian with systemd is made", async () => {
      await debianRoot();
    });
    await goInside(tally, folder, ["units", ...files, ...programs]);
    const obstacle = await engineObstacle();
    if (obstacle !== undefined) tally.skip("the image", obstacle);
    else {
      const engine = `${folder}/engine`;
      await Deno.mkdir(engine);
      await tally.run(
        "podman builds the Containerfile, on a Debian of debootstrap",
        async () => await buildImage(engine, await debianRoot(), here),
      );
      await goInside(tally, folder, ["image", engine]);
    }
    return tally.end();
  } finally {
    await wine;
    await Deno.remove(folder, { recursive: true });
  }
}

/** A part of it, in namespaces that end with it. */
async function goInside(
  tally: Tally,
  folder: string,
  [part = "", ...files]: readonly string[],
): Promise<void> {
  await Deno.mkdir(`${folder}/${part}`);
  const { stdout } = await new Deno.Command("unshare", {
    args: [
      ...["--net", "--mount", "--pid", "--fork", "--mount-proc"],
      ...["--kill-child", Deno.execPath(), "run", "--allow-all", "--no-check"],
      ...[import.meta.filename!, part, ...files],
    ],
    env: { [INSIDE]: `${folder}/${part}` },
    stderr: "inherit",
  }).output();
  const text = new TextDecoder().decode(stdout);
  tally.note(text.trimEnd());
  const total = readTotal(text);
  if (total === undefined) tally.fail(part, "it has ended without a total");
  else tally.add(total);
}

const DEB_LINE = /^[0-9a-f]{64} {2}tunnel_.*_amd64\.deb$/m;

/** What one starts in the root. */
class Machine {
  #children: Deno.ChildProcess[] = [];

  constructor(readonly root: string) {}

  start(...words: readonly string[]): Deno.ChildProcess {
    const child = new Deno.Command("/usr/sbin/chroot", {
      args: [this.root, ...words],
      ...{ stdin: "piped", stdout: "piped", stderr: "null" },
      clearEnv: true,
      env: { PATH: "/usr/bin:/bin", HOME: "/root" },
    }).spawn();
    this.#children.push(child);
    return child;
  }

  said(...words: readonly string[]): Promise<string> {
    return said(["/usr/sbin/chroot", this.root, ...words], {
      clearEnv: true,
      env: { PATH: "/usr/bin:/usr/sbin:/bin:/sbin", HOME: "/root" },
    });
  }

  dpkg(...words: readonly string[]): Promise<string> {
    return said(["dpkg", `--root=${this.root}`, "--force-depends", ...words]);
  }

  has(path: string): boolean {
    try {
      Deno.lstatSync(`${this.root}${path}`);
      return true;
    } catch {
      return false;
    }
  }

  end(): void {
    for (const child of this.#children) {
      try {
        child.kill("SIGKILL");
      } catch {
        // It has ended by itself.
      }
    }
  }
}

const SOCKET = "/run/frontend.sock";

async function startTunnel(machine: Machine): Promise<void> {
  machine.start(
    ...["/usr/bin/tunnel", "server", "--state-dir=/var/lib/tunnel/server"],
    ...[`--uds-name=${SOCKET}`, "--server-port=0", "--agent-port=8091"],
  );
  await eventually("the server serves", () => machine.has(SOCKET));
  const made = await machine.said(
    ...["tunnel", "token", "create", "--state-dir=/var/lib/tunnel/server"],
    ...["--node=edge", "--json"],
  );
  machine.start(
    ...["/usr/bin/tunnel", "agent", "--state-dir=/var/lib/tunnel/agent"],
    ...["--server=127.0.0.1:8091", "--node=edge"],
    `--join=${JSON.parse(made.split("\n")[0]!).token}`,
  );
  await eventually("the node is online", async () => {
    const list = ["node", "list", "--state-dir=/var/lib/tunnel/server"];
    return /edge.*online|online.*edge/.test(
      await machine.said("tunnel", ...list),
    );
  });
}

/** A connection through the tunnel to what sends back what it gets. */
function connect(machine: Machine, port: number): Connection {
  return new Connection(machine.start(
    ...["/usr/bin/tunnel", "dial", `127.0.0.1:${port}`],
    ...[`--server=unix:${SOCKET}`, "--node=edge"],
  ));
}

async function inside(folder: string): Promise<number> {
  const tally = new Tally();
  const [, first = "", next = ""] = Deno.args;
  const root = `${folder}/root`;
  await Deno.mkdir(root);
  await makeBareRoot(root);
  await said(["ip", "link", "set", "lo", "up"]);
  await said(["mount", "--rbind", "/dev", `${root}/dev`]);
  await said(["mount", "-t", "proc", "proc", `${root}/proc`]);
  const machine = new Machine(root);
  const target = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  (async () => {
    for await (const conn of target) {
      conn.readable.pipeTo(conn.writable).catch(() => {});
    }
  })();
  const { port } = target.addr;
  let held: Connection | undefined;
  await tally.run(
    "the .deb is installed, and its program runs",
    async () => {
      await machine.dpkg("--install", first);
      assertMatch(await machine.said("tunnel", "version"), /^tunnel 0\.1\./);
      assert(machine.has("/usr/share/man/man1/tunnel.1.gz"));
      assert(machine.has("/usr/lib/systemd/system/tunnel-server.service"));
    },
  );
  await tally.run("server and agent of the package carry bytes", async () => {
    await startTunnel(machine);
    held = connect(machine, port);
    await held.exchange("before\n");
  });
  await tally.run(
    "an upgrade keeps the connection, and serves the next",
    async () => {
      const words = await machine.dpkg("--install", next);
      assertMatch(
        words,
        new RegExp(`server: was 0\\.1\\..*is ${NEXT_VERSION}`),
      );
      assertMatch(words, new RegExp(`agent: was 0\\.1\\..*is ${NEXT_VERSION}`));
      await held!.exchange("after\n");
      await connect(machine, port).exchange("another\n");
    },
  );
  await tally.run("purging leaves nothing", async () => {
    machine.end();
    await machine.dpkg("--purge", "tunnel");
    for (
      const path of [
        ...["/usr/bin/tunnel", "/usr/lib/tunnel", "/var/lib/tunnel"],
        ...["/usr/share/man/man1/tunnel.1.gz", "/usr/share/doc/tunnel"],
      ]
    ) assert(!machine.has(path), `${path} is still there`);
  });
  machine.end();
  target.close();
  return tally.end();
}

const folder = Deno.env.get(INSIDE);
Deno.exit(
  await (folder === undefined
    ? outside()
    : Deno.args[0] === "units"
    ? units(folder, Deno.args.slice(1))
    : Deno.args[0] === "windows"
    ? windows(folder, Deno.args.slice(1))
    : Deno.args[0] === "image"
    ? image(Deno.args[1]!)
    : inside(folder)),
);
