import { assert, assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { eventually } from "../../tests/support/watch/patience.ts";
import { DirectoryEphemerals } from "./directory_ephemerals.ts";
import {
  EphemeralTexts,
  MEMBER_PART,
  PEER_TIMEOUT_MS,
  REMOVED_AFTER,
  RENEWALS,
} from "./ephemerals.ts";

const A = "aaaaaaaa";
const B = "bbbbbbbb";
const RENEW_MS = PEER_TIMEOUT_MS / RENEWALS;

/** Texts in a directory, and what was reported of them. */
class Rig implements AsyncDisposable {
  readonly timers = new FakeTimers();
  readonly texts: EphemeralTexts;
  readonly said: string[] = [];
  readonly #place: DirectoryEphemerals;

  constructor(path: string, instanceId: string) {
    const { timers } = this;
    const options = { instanceId, timeoutMs: PEER_TIMEOUT_MS, timers };
    this.#place = new DirectoryEphemerals({ ...options, path });
    this.texts = new EphemeralTexts(this.#place, options);
  }

  /** @returns What it has reported meanwhile. */
  async start(text: string): Promise<string[]> {
    this.texts.watch({
      changed: (changes) => {
        for (const { instanceId, part, text } of changes) {
          this.said.push(`${instanceId[0]} ${part} ${text ?? "gone"}`);
        }
      },
      following: () => this.said.push("following"),
      problem: (message) => this.said.push(message),
    });
    this.texts.put(MEMBER_PART, text);
    await this.#settle();
    return this.said.splice(0).sort();
  }

  async put(part: string, text: string | undefined): Promise<void> {
    this.texts.put(part, text);
    await this.#settle();
  }

  /** Lets it renew `times` times. @returns What it has reported meanwhile. */
  async renew(times = 1): Promise<string[]> {
    for (; times > 0; times--) {
      this.timers.advance(RENEW_MS);
      await this.#settle();
    }
    return this.said.splice(0).sort();
  }

  async #settle(): Promise<void> {
    let idle: unknown;
    while (idle !== this.#place.idle) {
      idle = this.#place.idle;
      await idle;
      // What follows from it has begun.
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.texts.close();
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

const filesIn = (path: string) =>
  [...Deno.readDirSync(path)].map(({ name }) => name);

Deno.test("owners see each other's texts, and each other's end at once", async () => {
  await using directory = await temporary();
  await using a = new Rig(directory.path, A);
  assertEquals(await a.start("one"), ["a member one", "following"]);
  const b = new Rig(directory.path, B);
  assertEquals(await b.start("two"), [
    "a member one",
    "b member two",
    "following",
  ]);
  await b.put("agents-03", "list");
  assertEquals(await a.renew(), ["b agents-03 list", "b member two"]);
  await b.put("agents-03", undefined);
  assertEquals(await a.renew(), ["b agents-03 gone"]);
  await b.texts.close();
  assertEquals(await a.renew(), ["b member gone"]);
  assertEquals((await Deno.stat(directory.path)).mode! & 0o777, 0o700);
});

Deno.test("what happens on this machine is seen before the next renewal", async () => {
  await using directory = await temporary();
  await using a = new Rig(directory.path, A);
  await a.start("one");
  const seenBy = async (what: string) => {
    await eventually(`${what} is seen`, () => {
      // What comes close together is looked at once.
      if (a.timers.pendingMs.some((ms) => ms <= 100)) a.timers.advance(100);
      return a.said.includes(what);
    });
  };
  const b = new Rig(directory.path, B);
  await b.start("two");
  await seenBy("b member two");
  await b.texts.close();
  await seenBy("b member gone");
});

Deno.test("an owner that does not renew is gone after the timeout, and comes back", async () => {
  await using directory = await temporary();
  await using a = new Rig(directory.path, A);
  await a.start("one");
  await using b = new Rig(directory.path, B);
  await b.start("two");
  assertEquals(await a.renew(), ["b member two"]);
  assertEquals(await a.renew(RENEWALS - 1), []);
  assertEquals(await a.renew(2), ["b member gone"]);
  await b.renew();
  assertEquals(await a.renew(), ["b member two"]);
});

Deno.test("what an owner has left behind long ago is not looked at, and removed", async () => {
  await using directory = await temporary();
  await Deno.mkdir(directory.path);
  const left = `${directory.path}/${B}.${MEMBER_PART}`;
  await Deno.writeTextFile(left, "old");
  const unfinished = `${directory.path}/.unfinished-${B}`;
  await Deno.writeTextFile(unfinished, "ol");
  const long = new Date(Date.now() - 11 * PEER_TIMEOUT_MS);
  await Deno.utime(left, long, long);
  await using a = new Rig(directory.path, A);
  assertEquals(await a.start("one"), ["a member one", "following"]);
  assertEquals(await a.renew(RENEWALS * REMOVED_AFTER + 1), []);
  assertEquals(filesIn(directory.path), [`${A}.${MEMBER_PART}`]);
});

Deno.test("an emptied directory is filled again", async () => {
  await using directory = await temporary();
  await using a = new Rig(directory.path, A);
  await a.start("one");
  await a.put("agents-03", "list");
  await Deno.remove(directory.path, { recursive: true });
  const said = await a.renew(2);
  assert(!said.some((line) => line.startsWith("Cannot")), said.join());
  assertEquals(filesIn(directory.path).sort(), [
    `${A}.agents-03`,
    `${A}.${MEMBER_PART}`,
  ]);
});

Deno.test("a directory that cannot be used is said, and so is its end", async () => {
  await using directory = await temporary();
  await Deno.writeTextFile(directory.path, "");
  await using a = new Rig(directory.path, A);
  const said = await a.start("one");
  assert(said[0]!.startsWith("Cannot meet other servers in"), said.join());
  await Deno.remove(directory.path);
  const more = await a.renew(2);
  assertEquals(more.filter((line) => !line.startsWith("Cannot")), [
    "a member one",
    "following",
  ]);
});

Deno.test("files that are nobody's are left alone", async () => {
  await using directory = await temporary();
  await Deno.mkdir(directory.path);
  for (const name of ["x", "../x.member".slice(3), `${B}.other`, "README"]) {
    await Deno.writeTextFile(`${directory.path}/${name}`, "");
  }
  await using a = new Rig(directory.path, A);
  assertEquals(await a.start("one"), ["a member one", "following"]);
  assertEquals(filesIn(directory.path).length, 5);
});
