/**
 * The image, by a real engine: podman builds the Containerfile, on a Debian that
 * debootstrap has made, and starts it with runc and the limits that are shipped:
 * a user without rights, a read-only root, no capabilities, and so much memory.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { findDebianProgram } from "../../tests/support/program/debian.ts";
import { eventually } from "../../tests/support/watch/patience.ts";
import { Tally } from "../../tests/support/watch/tally.ts";
import { groupMemory } from "../peers/memory_group.ts";
import { Connection, said } from "./said.ts";

const MEGABYTES_MAX = 120;
const START_MS_MAX = 500;
const PORT = 7_000;
const IMAGE = "localhost/tunnel";

/** The limits of deploy/kubernetes, as an engine's flags. */
const CONFINED = [
  ...["--network=host", "--read-only", "--read-only-tmpfs=false"],
  ...["--cap-drop=ALL", "--security-opt=no-new-privileges", "--ulimit=host"],
  // There is no systemd that would look at its health.
  ...["--memory=512m", "--health-interval=disable"],
];

/** Why there is no engine; `undefined` when there is one. */
export async function engineObstacle(): Promise<string | undefined> {
  const found = await said(["podman", "--version"]).catch(() => undefined);
  return found === undefined
    ? "there is no podman (apt-get install podman)"
    : undefined;
}

/** An engine whose images and containers are in a folder, and go with it. */
export class Engine {
  private constructor(private readonly words: readonly string[]) {}

  static async in(folder: string): Promise<Engine> {
    const { path } = await findDebianProgram("runc");
    return new Engine([
      ...["podman", `--root=${folder}/images`, `--runroot=${folder}/run`],
      // Not systemd's, of which there is none.
      ...["--storage-driver=overlay", "--cgroup-manager=cgroupfs"],
      `--runtime=${path}`,
    ]);
  }

  command(...words: readonly string[]): string[] {
    return [...this.words, ...words];
  }

  said(...words: readonly string[]): Promise<string> {
    return said(this.command(...words));
  }

  /** Starts a container. */
  async run(name: string, ...words: readonly string[]): Promise<void> {
    const how = ["run", "--detach", `--name=${name}`, ...CONFINED];
    await this.said(
      ...how,
      `--volume=${name}:/var/lib/tunnel`,
      IMAGE,
      ...words,
    );
  }

  exec(name: string, ...words: readonly string[]): Promise<string> {
    return this.said("exec", name, "tunnel", ...words);
  }
}

/**
 * What the Containerfile says, needing what a network has.
 *
 * @param debian A root; there is no registry that has its image.
 * @param clone Whose release is taken.
 */
export async function buildImage(
  folder: string,
  debian: string,
  clone: string,
): Promise<void> {
  const engine = await Engine.in(folder);
  const base = /^FROM (\S+) AS root$/m.exec(
    await Deno.readTextFile(`${clone}/deploy/image/Containerfile`),
  )![1]!;
  const archive = `${folder}/debian.tar`;
  await said(["tar", "-C", debian, "-cf", archive, "."]);
  await engine.said("import", "--quiet", archive, base);
  await Deno.remove(archive);
  await engine.said(
    ...["build", "--isolation=chroot", "--pull=never", "--layers=false"],
    ...["--format=docker", `--tag=${IMAGE}`],
    ...[`--file=${clone}/deploy/image/Containerfile`, clone],
  );
}

async function isSmall(engine: Engine, tally: Tally): Promise<void> {
  const root = (await engine.said("image", "mount", IMAGE)).trim();
  const found = (...what: readonly string[]) => said(["find", root, ...what]);
  const [size = ""] = (await said(["du", "-sm", root])).split("\t");
  tally.note(`the image unpacked: ${size} MB`);
  assert(Number(size) <= MEGABYTES_MAX);
  assertEquals(await found("-name", "*sh", "-perm", "/111", "-type", "f"), "");
  const others = ["-perm", "/022", "!", "-type", "l", "!", "-path", "*/tmp"];
  assertEquals(await found(...others), "");
}

/** A server, an agent, and a connection through both. */
async function tunnels(engine: Engine, tally: Tally): Promise<void> {
  const echo = Deno.listen({ hostname: "127.0.0.1", port: PORT });
  (async () => {
    for await (const conn of echo) {
      conn.readable.pipeTo(conn.writable).catch(() => {});
    }
  })();
  await engine.run("server", "server");
  await eventually(
    "the server serves",
    () => engine.exec("server", "status").then(() => true, () => false),
    30_000,
  );
  const made = await engine.exec(
    ...["server", "token", "create", "--node=edge", "--json"] as const,
  );
  const { token } = JSON.parse(made.split("\n")[0]!);
  await engine.run(
    ...["agent", "agent", "--server=127.0.0.1:8091", "--node=edge"] as const,
    `--join=${token}`,
  );
  await eventually(
    "the node is online",
    async () =>
      /edge.*online/.test(await engine.exec("server", "node", "list")),
    30_000,
  );
  const [command = "", ...args] = engine.command(
    ...["exec", "--interactive", "server", "tunnel", "dial"],
    ...[`127.0.0.1:${PORT}`, "--node=edge"],
  );
  const connection = new Connection(
    new Deno.Command(command, {
      args,
      ...{ stdin: "piped", stdout: "piped", stderr: "inherit" },
    }).spawn(),
  );
  await connection.exchange("through the image\n");
  await connection.close();
  await engine.said("healthcheck", "run", "server");
  for (const name of ["server", "agent"]) {
    const place = ["inspect", "--format={{.State.CgroupPath}}", name];
    const path = (await engine.said(...place)).trim();
    const { peakMegabytes, kills } = await groupMemory(path);
    tally.note(`memory of the ${name}, at most: ${peakMegabytes} MB`);
    assertEquals(kills, 0, `${name} had not enough`);
  }
  echo.close();
}

/** The fastest of some: the machine may be busy. Without what an engine takes. */
async function starts(engine: Engine, tally: Tally): Promise<void> {
  const ask = (what: string) =>
    engine.said("inspect", `--format={{json .${what}}}`, "server");
  const env: string[] = JSON.parse(await ask("Config.Env"));
  const command = [
    ...["env", "-i", ...env, "nsenter", `--target=${await ask("State.Pid")}`],
    ...["--mount", "--pid", "--setuid=65532", "--setgid=65532"],
    ...["/usr/bin/tunnel", "version"],
  ].map((word) => word.trim());
  const taken: number[] = [];
  for (let index = 0; index < 5; index++) {
    const beganMs = performance.now();
    assertMatch(await said(command), /^tunnel /);
    taken.push(performance.now() - beganMs);
  }
  const best = Math.round(Math.min(...taken));
  tally.note(`a start: ${best} ms`);
  assert(best <= START_MS_MAX);
}

/** By SIGTERM, as engines do. */
async function ends(engine: Engine): Promise<void> {
  for (const name of ["agent", "server"]) {
    await engine.said("stop", "--time=30", name);
    const state = ["inspect", "--format={{.State.ExitCode}}", name];
    assertEquals((await engine.said(...state)).trim(), "0", name);
  }
}

/** @param folder Where {@linkcode buildImage} has built. */
export async function image(folder: string): Promise<number> {
  const tally = new Tally();
  const engine = await Engine.in(folder);
  await said(["ip", "link", "set", "lo", "up"]);
  const steps = {
    "the image is small, and has no shell": isSmall,
    "a tunnel of it carries bytes, confined, and is healthy": tunnels,
    "a command in its container starts fast": starts,
    "its containers end when they are told": ends,
    "the demo runs with a folder for it": async () => {
      const how = ["run", "--rm", ...CONFINED, "--tmpfs=/tmp"];
      await engine.said(...how, IMAGE, "demo");
    },
  };
  for (const [name, step] of Object.entries(steps)) {
    await tally.run(name, () => step(engine, tally));
  }
  await engine.said("rm", "--all", "--force", "--time=0");
  await engine.said("image", "umount", "--all");
  return tally.end();
}
