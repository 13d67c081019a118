/**
 * The image, as an engine would start it: its root is made here by the script of
 * the Containerfile, mounted read-only, and entered by a user without rights and
 * with a limit of memory. The engine itself is not run.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { eventually } from "../../tests/support/watch/patience.ts";
import { Tally } from "../../tests/support/watch/tally.ts";
import { Connection, said } from "./said.ts";

const MEGABYTES_MAX = 120;
const START_MS_MAX = 500;
const MEMORY = 512 * 1024 * 1024;
const GROUP = "/sys/fs/cgroup/memory/tunnel-image";
const PORT = 7_000;

/** What the Containerfile says, by word. */
const CONTAINERFILE = "deploy/image/Containerfile";

function jsonOf(text: string, word: string): string[] {
  return JSON.parse(new RegExp(`${word} (\\[.*\\])$`, "m").exec(text)![1]!);
}

class Image {
  readonly #children: Deno.ChildProcess[] = [];
  readonly #file = Deno.readTextFileSync(CONTAINERFILE);

  constructor(readonly root: string) {}

  /** Words that run what is in it. */
  words(words: readonly string[], main = "ENTRYPOINT"): string[] {
    const [, variables = ""] = /^ENV (.*)$/m.exec(this.#file) ?? [];
    return [
      ...[
        "sh",
        "-c",
        `[ ! -d ${GROUP} ] || echo $$ >${GROUP}/tasks; exec "$@"`,
      ],
      ...["sh", "env", "-i", ...variables.split(" "), "/usr/sbin/chroot"],
      ...["--userspec=65532:65532", this.root],
      ...jsonOf(this.#file, main),
      ...words,
    ];
  }

  said(...words: readonly string[]): Promise<string> {
    return said(this.words(words));
  }

  start(...words: readonly string[]): Deno.ChildProcess {
    const [command = "", ...args] = this.words(words);
    const child = new Deno.Command(command, {
      args,
      ...{ stdin: "piped", stdout: "piped", stderr: "inherit" },
    }).spawn();
    this.#children.push(child);
    return child;
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

/** Read-only, with what an engine mounts. */
async function mounted(root: string, state: string): Promise<void> {
  const mounts = [
    ["--bind", root, root],
    ["-o", "remount,bind,ro", root],
    ["-t", "proc", "proc", `${root}/proc`],
    ["-t", "tmpfs", "-o", "mode=755", "tmpfs", `${root}/dev`],
    ["--bind", state, `${root}/var/lib/tunnel`],
  ];
  for (const mount of mounts) await said(["mount", ...mount]);
  for (const name of ["null", "zero", "random", "urandom"]) {
    await Deno.writeTextFile(`${root}/dev/${name}`, "");
    await said(["mount", "--bind", `/dev/${name}`, `${root}/dev/${name}`]);
  }
  await said(["ip", "link", "set", "lo", "up"]);
}

/** A server, an agent, and a connection through both. */
async function tunnels(image: Image, tally: Tally): Promise<void> {
  const echo = Deno.listen({ hostname: "127.0.0.1", port: PORT });
  (async () => {
    for await (const conn of echo) {
      conn.readable.pipeTo(conn.writable).catch(() => {});
    }
  })();
  image.start("server");
  await eventually(
    "the server serves",
    async () => await image.said("status").then(() => true, () => false),
    30_000,
  );
  const made = await image.said("token", "create", "--node=edge", "--json");
  const { token } = JSON.parse(made.split("\n")[0]!);
  image.start(
    ...["agent", "--server=127.0.0.1:8091", "--node=edge"],
    `--join=${token}`,
  );
  await eventually(
    "the node is online",
    async () =>
      /edge.*online|online.*edge/.test(await image.said("node", "list")),
    30_000,
  );
  const connection = new Connection(
    image.start("dial", `127.0.0.1:${PORT}`, "--node=edge"),
  );
  await connection.exchange("through the image\n");
  await connection.close();
  await said(image.words([], "HEALTHCHECK .* CMD"));
  const peak = await Deno.readTextFile(`${GROUP}/memory.max_usage_in_bytes`)
    .catch(() => "0");
  tally.note(
    `memory of all programs, at most: ${Math.round(Number(peak) / 1e6)} MB`,
  );
  echo.close();
}

/** The fastest of some: the machine may be busy. */
async function starts(image: Image, tally: Tally): Promise<void> {
  const taken: number[] = [];
  for (let index = 0; index < 5; index++) {
    const beganMs = performance.now();
    assertMatch(await image.said("version"), /^tunnel /);
    taken.push(performance.now() - beganMs);
  }
  const best = Math.round(Math.min(...taken));
  tally.note(`a start: ${best} ms`);
  assert(best <= START_MS_MAX);
}

/** @param deb What the root is made of. */
export async function image(folder: string, deb: string): Promise<number> {
  const tally = new Tally();
  const [root, state] = [`${folder}/image`, `${folder}/state`];
  await Deno.mkdir(state);
  await Deno.chmod(state, 0o700);
  await said(["chown", "65532:65532", state]);
  const image = new Image(root);
  await tally.run(
    "the root of the image is small, and has no shell",
    async () => {
      await said(["deploy/image/root.sh", deb, root]);
      const [size = ""] = (await said(["du", "-sm", root])).split("\t");
      tally.note(`the image unpacked: ${size} MB`);
      assert(Number(size) <= MEGABYTES_MAX);
      assertEquals(
        await said([
          "find",
          root,
          "-name",
          "*sh",
          "-perm",
          "/111",
          "-type",
          "f",
        ]),
        "",
      );
      assertEquals(
        (await said(["find", root, "-perm", "/022", "!", "-type", "l"])).trim(),
        "",
      );
    },
  );
  await mounted(root, state);
  await Deno.mkdir(GROUP).then(
    () => Deno.writeTextFile(`${GROUP}/memory.limit_in_bytes`, String(MEMORY)),
    () => tally.skip("a limit of memory", "there are no cgroups of version 1"),
  );
  await tally.run(
    "it starts fast, without rights and on a read-only root",
    () => starts(image, tally),
  );
  await tally.run(
    "a tunnel of it carries bytes, and is healthy",
    () => tunnels(image, tally),
  );
  image.end();
  await tally.run("the demo runs with a folder for it", async () => {
    await said([
      "mount",
      "-t",
      "tmpfs",
      "-o",
      "mode=1777",
      "tmpfs",
      `${root}/tmp`,
    ]);
    await image.said("demo");
  });
  await Deno.remove(GROUP).catch(() => {});
  return tally.end();
}
