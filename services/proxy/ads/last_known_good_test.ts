import { assertEquals, assertMatch } from "@std/assert";
import { TYPE_URLS } from "../../../proto/xds/resource.ts";
import type { Recalled } from "../../ads/ads_client.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import type { Timers } from "../../../proto/sync/clock.ts";
import { FakeTimers } from "../../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../../tests/support/watch/recorded_log.ts";
import {
  LAST_GOOD_SAVE_DELAY_MS,
  LastKnownGood,
  SAVE_INTERVAL_MS,
} from "./last_known_good.ts";

const RESOURCES: readonly Recalled[] = [
  {
    kind: "cluster",
    name: 'odd "name"\n',
    version: "v1",
    typeUrl: TYPE_URLS.cluster,
    value: Uint8Array.from({ length: 256 }, (_, i) => i),
  },
  {
    kind: "endpoints",
    name: "b",
    version: "",
    typeUrl: TYPE_URLS.endpoints,
    value: new Uint8Array(0),
  },
];

/** A folder with nothing in it yet. */
class Rig implements AsyncDisposable {
  readonly log = new RecordedLog();

  private constructor(readonly folder: string) {}

  static async open(): Promise<Rig> {
    return new Rig(await Deno.makeTempDir());
  }

  get path(): string {
    return `${this.folder}/deep/state`;
  }

  kept(
    { node = "n1", timers = systemTimers as Timers, bytesMax = 10_000 } = {},
  ): LastKnownGood {
    const { path, log } = this;
    return new LastKnownGood({ path, node, timers, log, bytesMax });
  }

  /** What a process that ends now leaves behind. */
  async save(resources: readonly Recalled[]): Promise<void> {
    const kept = this.kept();
    kept.changed(() => resources);
    await kept.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }
}

Deno.test("what was kept comes back as it was, for its owner alone", async () => {
  await using rig = await Rig.open();
  assertEquals(await rig.kept().load(), undefined);
  const beforeMs = Date.now();
  await rig.save(RESOURCES);
  const found = await rig.kept().load();
  assertEquals(found?.resources, RESOURCES);
  assertEquals(found!.savedMs >= beforeMs, true);
  assertEquals((await Deno.stat(rig.path)).mode! & 0o777, 0o600);
  await rig.save([]);
  assertEquals((await rig.kept().load())?.resources, []);
  assertEquals(rig.log.lines, []);
});

Deno.test("changes are written together, soon, and not too often", async () => {
  await using rig = await Rig.open();
  const timers = new FakeTimers();
  const kept = rig.kept({ timers });
  let collected = 0;
  const collect = () => {
    collected++;
    return RESOURCES;
  };
  kept.changed(collect);
  kept.changed(collect);
  timers.advance(LAST_GOOD_SAVE_DELAY_MS - 1);
  assertEquals(collected, 0);
  timers.advance(1);
  assertEquals(collected, 1);
  // It is being written: what comes now is for the next time.
  kept.changed(collect);
  while (timers.pendingCount === 0) {
    await new Promise((done) => setTimeout(done));
  }
  assertEquals((await rig.kept().load())?.resources, RESOURCES);
  timers.advance(SAVE_INTERVAL_MS - 1);
  assertEquals(collected, 1);
  timers.advance(1);
  assertEquals(collected, 2);
  await kept.close();
  kept.changed(collect);
  assertEquals([collected, timers.pendingCount], [2, 0]);
});

Deno.test("a file that is not as it was written is not used, and says why", async () => {
  await using rig = await Rig.open();
  await rig.save(RESOURCES);
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
    assertEquals(await rig.kept().load(), undefined);
    const [line] = rig.log.take();
    assertMatch(line!, why);
    assertMatch(
      line!,
      /^warn: Cannot use .* in .*\/state: .*; services are served/,
    );
  }
  await rig.save(RESOURCES);
  assertEquals((await rig.kept().load())?.resources, RESOURCES);
});

Deno.test("another node's file, and one that others can write to, are not used", async () => {
  await using rig = await Rig.open();
  await rig.save(RESOURCES);
  assertEquals(await rig.kept({ node: "n2" }).load(), undefined);
  assertMatch(rig.log.take()[0]!, /it is of the node n1, this is the node n2/);
  await Deno.chmod(rig.path, 0o666);
  assertEquals(await rig.kept().load(), undefined);
  assertMatch(rig.log.take()[0]!, /its mode is 0666, wanted 0600/);
});

Deno.test("a disk that takes nothing is said once, and tried again", async () => {
  await using rig = await Rig.open();
  // Where a directory should be is a file: as full as a disk can be.
  await Deno.writeTextFile(`${rig.folder}/deep`, "");
  const kept = rig.kept();
  for (const _ of [1, 2]) {
    kept.changed(() => RESOURCES);
    await kept.close();
  }
  const lines = rig.log.take();
  assertEquals(lines.length, 1);
  assertMatch(
    lines[0]!,
    /^warn: Cannot keep what discovery says in .*: .*; a proxy that starts/,
  );
  assertMatch(kept.problem!, /./);
  await Deno.remove(`${rig.folder}/deep`);
  kept.changed(() => RESOURCES);
  await kept.close();
  assertEquals(rig.log.take(), [
    `event: Can keep what discovery says in ${rig.path} again`,
  ]);
  assertEquals(kept.problem, undefined);
});

Deno.test("what is too long is not written, and the last one stays", async () => {
  await using rig = await Rig.open();
  await rig.save(RESOURCES);
  const long = { ...RESOURCES[0]!, value: new Uint8Array(20_000) };
  await rig.save([long]);
  assertMatch(rig.log.take()[0]!, /it would be longer than 10000 bytes/);
  assertEquals((await rig.kept().load())?.resources, RESOURCES);
});
