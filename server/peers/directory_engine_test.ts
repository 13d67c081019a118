import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { DirectoryEngine, LOOK_MS } from "./directory_engine.ts";
import { MEMBER_PART, PEER_TIMEOUT_MS } from "./member_engine.ts";

const A = "aaaaaaaa";
const B = "bbbbbbbb";

/** An engine over a directory, and what it has reported. */
class Rig implements AsyncDisposable {
  readonly engine: DirectoryEngine;
  readonly said: string[] = [];

  constructor(
    path: string,
    instanceId: string,
    readonly timers: FakeTimers = new FakeTimers(),
  ) {
    const timeoutMs = PEER_TIMEOUT_MS;
    this.engine = new DirectoryEngine({ path, instanceId, timeoutMs, timers });
  }

  start(text: string): void {
    this.engine.start({
      changed: (changes) => {
        for (const { instanceId, part, text } of changes) {
          this.said.push(`${instanceId[0]} ${part} ${text ?? "gone"}`);
        }
      },
      following: () => this.said.push("following"),
      problem: (message) => this.said.push(message),
    });
    this.engine.publish(MEMBER_PART, text);
  }

  /** Lets it look `times` times. @returns What it has reported meanwhile. */
  async look(times = 1): Promise<string[]> {
    const before = this.said.length;
    for (; times > 0; times--) {
      this.timers.advance(LOOK_MS);
      await this.engine.idle;
    }
    return this.said.slice(before);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.engine.stop();
    assertEquals(this.timers.pendingCount, 0, "a timer is left");
  }
}

async function temporary(): Promise<AsyncDisposable & { path: string }> {
  const root = await Deno.makeTempDir();
  return {
    path: `${root}/peers`,
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
}

Deno.test("servers see each other's parts, and each other's end at once", async () => {
  await using directory = await temporary();
  await using a = new Rig(directory.path, A);
  a.start("one");
  assertEquals(await a.look(), ["a member one", "following"]);
  const b = new Rig(directory.path, B);
  b.start("two");
  assertEquals(await b.look(), ["b member two", "a member one", "following"]);
  b.engine.publish("agents-03", "list");
  await b.look();
  assertEquals((await a.look()).sort(), ["b agents-03 list", "b member two"]);
  b.engine.publish("agents-03", undefined);
  await b.look();
  assertEquals(await a.look(), ["b agents-03 gone"]);
  await b.engine.stop();
  assertEquals(await a.look(), ["b member gone"]);
  assertEquals((await Deno.stat(directory.path)).mode! & 0o777, 0o700);
});

Deno.test("a server that is not renewed is gone after the timeout, and comes back", async () => {
  await using directory = await temporary();
  await using a = new Rig(directory.path, A);
  a.start("one");
  await using b = new Rig(directory.path, B);
  b.start("two");
  await b.look();
  await a.look();
  const looks = PEER_TIMEOUT_MS / LOOK_MS;
  assertEquals(await a.look(looks - 1), []);
  assertEquals(await a.look(2), ["b member gone"]);
  await b.look(looks);
  assertEquals(await a.look(), ["b member two"]);
});

Deno.test("what a server has left behind long ago is not looked at, and removed", async () => {
  await using directory = await temporary();
  await Deno.mkdir(directory.path);
  const left = `${directory.path}/${B}.${MEMBER_PART}`;
  await Deno.writeTextFile(left, "old");
  const unfinished = `${directory.path}/.unfinished-${B}`;
  await Deno.writeTextFile(unfinished, "ol");
  const long = new Date(Date.now() - 11 * PEER_TIMEOUT_MS);
  await Deno.utime(left, long, long);
  await Deno.utime(unfinished, long, long);
  await using a = new Rig(directory.path, A);
  a.start("one");
  assertEquals(await a.look(), ["a member one", "following"]);
  const names = [...Deno.readDirSync(directory.path)].map(({ name }) => name);
  assertEquals(names, [`${A}.${MEMBER_PART}`]);
});

Deno.test("an emptied directory is filled again", async () => {
  await using directory = await temporary();
  await using a = new Rig(directory.path, A);
  a.start("one");
  await a.look();
  await Deno.remove(directory.path, { recursive: true });
  const said = await a.look(3);
  assertStringIncludes(said[0]!, "Cannot meet other servers in");
  assert(said.includes("following"), said.join());
  assert([...Deno.readDirSync(directory.path)].length === 1);
});

Deno.test("files that are nobody's are left alone", async () => {
  await using directory = await temporary();
  await Deno.mkdir(directory.path);
  for (const name of ["x", "../x.member".slice(3), `${B}.other`, "README"]) {
    await Deno.writeTextFile(`${directory.path}/${name}`, "");
  }
  await using a = new Rig(directory.path, A);
  a.start("one");
  assertEquals(await a.look(), ["a member one", "following"]);
  assertEquals([...Deno.readDirSync(directory.path)].length, 5);
});
