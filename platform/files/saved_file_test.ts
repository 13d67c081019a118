import { assertEquals, assertMatch } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import { SavedFile } from "./saved_file.ts";

/** A folder with nothing in it yet, and processes that keep a file there. */
class Rig implements AsyncDisposable {
  readonly log = new RecordedLog();
  readonly timers = new FakeTimers();
  readonly folder = Deno.makeTempDirSync();
  readonly path = `${this.folder}/deep/state`;
  items: readonly unknown[] = [{ name: 'odd "name"\n' }, "v1"];
  written = 0;

  kept(owner = "n1"): SavedFile {
    const { path, log, timers } = this;
    return new SavedFile({
      ...{ path, log, timers, owner, format: "f", what: "it" },
      ...{ unusable: "nothing is known", unkept: "the last one stays" },
      ...{ bytesMax: 10_000, delayMs: 1_000, intervalMs: 10_000 },
      items: () => {
        this.written++;
        return this.items;
      },
    });
  }

  /** What a process that ends now leaves behind. */
  async save(kept = this.kept()): Promise<void> {
    kept.changed();
    await kept.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }
}

Deno.test("what was kept comes back as it was, and damage says why it does not", async () => {
  await using rig = new Rig();
  assertEquals(await rig.kept().read(), undefined);
  await rig.save();
  assertEquals((await rig.kept().read())?.items, rig.items);
  assertEquals((await Deno.stat(rig.path)).mode! & 0o777, 0o600);
  const good = await Deno.readTextFile(rig.path);
  const damaged: readonly (readonly [string, RegExp])[] = [
    [good.slice(0, -3), /it is damaged: its checksum is another one/],
    [good.replace("v1", "v2"), /it is damaged: its checksum is another one/],
    ["", /it is damaged: its first line is no JSON/],
    ["\0".repeat(good.length), /it is damaged: its first line is no JSON/],
    ["[]\n", /it holds something else/],
    [good.replace('"version":1', '"version":2'), /version 2, wanted 1/],
    [good.replace('"savedMs"', '"saved"'), /its first line says less/],
    [good.padEnd(20_000), /it would be longer than 10000 bytes/],
  ];
  for (const [text, why] of damaged) {
    await Deno.writeTextFile(rig.path, text);
    assertEquals(await rig.kept().read(), undefined);
    const [line] = rig.log.take();
    assertMatch(line!, why);
    assertMatch(line!, /^warn: Cannot use it in .*\/state: .*; nothing is/);
  }
  await rig.save();
  assertEquals(await rig.kept("n2").read(), undefined);
  assertMatch(rig.log.take()[0]!, /it is of n1, this is n2/);
  await Deno.chmod(rig.path, 0o666);
  assertEquals(await rig.kept().read(), undefined);
  assertMatch(rig.log.take()[0]!, /its mode is 0666, wanted 0600/);
});

Deno.test("changes are written together, soon, and not too often", async () => {
  await using rig = new Rig();
  const kept = rig.kept();
  kept.changed();
  kept.changed();
  rig.timers.advance(999);
  assertEquals(rig.written, 0);
  rig.timers.advance(1);
  assertEquals(rig.written, 1);
  // It is being written: what comes now is for the next time.
  kept.changed();
  while (rig.timers.pendingCount === 0) {
    await new Promise((done) => setTimeout(done));
  }
  rig.timers.advance(9_999);
  assertEquals(rig.written, 1);
  rig.timers.advance(1);
  assertEquals(rig.written, 2);
  await kept.close();
  kept.changed();
  assertEquals([rig.written, rig.timers.pendingCount], [2, 0]);
});

Deno.test("a disk that takes nothing is said once, and what is too long leaves the last one", async () => {
  await using rig = new Rig();
  // Where a directory should be is a file: as full as a disk can be.
  await Deno.writeTextFile(`${rig.folder}/deep`, "");
  const kept = rig.kept();
  await rig.save(kept);
  await rig.save(kept);
  const lines = rig.log.take();
  assertEquals(lines.length, 1);
  assertMatch(lines[0]!, /^warn: Cannot keep it in .*: .*; the last one stays/);
  assertMatch(kept.problem!, /./);
  await Deno.remove(`${rig.folder}/deep`);
  await rig.save(kept);
  assertEquals(rig.log.take(), [`event: Can keep it in ${rig.path} again`]);
  assertEquals(kept.problem, undefined);
  const { items } = rig;
  rig.items = ["x".repeat(20_000)];
  await rig.save();
  assertMatch(rig.log.take()[0]!, /it would be longer than 10000 bytes/);
  assertEquals((await rig.kept().read())?.items, items);
});
