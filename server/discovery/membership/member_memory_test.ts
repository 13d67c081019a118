import { assert, assertEquals, assertMatch } from "@std/assert";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import { inMemoryFolder } from "../../../tests/support/memory/memory_folder.ts";
import {
  MemoryPlace,
  MemoryStore,
} from "../../../tests/support/memory/memory_store.ts";
import { RecordedLog } from "../../../tests/support/watch/recorded_log.ts";
import { DirectoryStore } from "../../../neighbours/store/directory_store.ts";
import { RemoteStore } from "../../../neighbours/store/remote_store.ts";
import { MemberRecords, type RememberedAgent } from "./member_memory.ts";

function agents(count: number): RememberedAgent[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `agent-${index}`,
    node: `agent-${index}`,
    offers: [{
      ...{ service: "shop/web", namespace: "shop", name: "web" },
      ...{ port: 80, protocol: "tcp" as const, appProtocol: "" },
      ...{ address: "127.0.0.1", targetPort: 8080 },
    }],
    seenMs: index,
    state: "ready" as const,
  }));
}

async function recordsIn(root: string, id: string, log: RecordedLog) {
  return new MemberRecords(await DirectoryStore.openLocal(root), id, log);
}

Deno.test("servers that share a directory have one file each, and know what each of them knew last", () =>
  inMemoryFolder(async (root) => {
    const log = new RecordedLog();
    const one = await recordsIn(root, "s1", log);
    const two = await recordsIn(root, "../s2", log);
    assertEquals(await one.load(), []);
    const [a, b, c] = agents(3) as [
      RememberedAgent,
      RememberedAgent,
      RememberedAgent,
    ];
    const later = { ...b, seenMs: 7 };
    await one.save([a, later]);
    await two.save([b, c]);
    const found = await (await recordsIn(root, "s3", log)).load();
    assertEquals(
      found.toSorted((one, other) => one.id < other.id ? -1 : 1),
      [a, later, c],
    );
    const names = () =>
      [...Deno.readDirSync(`${root}/discovery`)].map(({ name }) => name);
    assertEquals(names().length, 2);
    // As versions before wrote it.
    for (const name of names()) {
      assertMatch(name, /^members-[0-9a-f]{16}\.json$/);
    }
    for (const memory of [one, two]) await memory.save([]);
    assertEquals([names(), log.take()], [[], []]);
  }));

Deno.test("a file that is not as it was written is said and left out", () =>
  inMemoryFolder(async (root) => {
    const log = new RecordedLog();
    const [agent] = agents(1);
    const good = await recordsIn(root, "s1", log);
    await good.save(agents(1));
    const bad = `${root}/discovery/members-0123456789abcdef.json`;
    const whole = { format: "tunnel-members", version: 1 };
    const strange = { ...agent!.offers[0], protocol: "__proto__" };
    for (
      const text of [
        ...["", "{", "null"],
        JSON.stringify({ ...whole, version: 2, agents: [] }),
        JSON.stringify({ ...whole, agents: [{ id: "x" }] }),
        JSON.stringify({ ...whole, agents: [{ ...agent, offers: [strange] }] }),
      ]
    ) {
      await Deno.writeTextFile(bad, text);
      const found = await (await recordsIn(root, "s1", log)).load();
      assertEquals(found, agents(1), text);
      assertMatch(log.take().join(), /warn: Cannot use .*members-0123/);
    }
    await Deno.remove(`${root}/discovery`, { recursive: true });
    await Deno.writeTextFile(`${root}/discovery`, "");
    const nowhere = await recordsIn(root, "s1", log);
    await nowhere.save(agents(1));
    await nowhere.save(agents(1));
    assertEquals(log.take().length, 1);
  }));

async function memoryOf(place: MemoryPlace, id: string) {
  const engine = await RemoteStore.open({
    store: new MemoryStore(place),
    timers: systemTimers,
    wallClock: Date.now,
    random: () => 0,
    warn: () => {},
  });
  const log = new RecordedLog();
  return { memory: new MemberRecords(engine, id, log), engine, log };
}

Deno.test("what agents announced is kept in parts that fit, and read by others", async () => {
  const place = new MemoryPlace();
  const one = await memoryOf(place, "one");
  const other = await memoryOf(place, "other");
  await one.memory.save(agents(200));
  const parts = () =>
    [...place.records.keys()].filter((key) => key.startsWith("discovery/"));
  assert(parts().length > 2, `${parts()}`);
  for (const { text } of place.records.values()) assert(text.length <= 10_000);
  assertEquals(await other.memory.load(), agents(200));
  // Fewer of them need fewer parts.
  await one.memory.save(agents(3));
  assertEquals(parts().length, 1);
  assertEquals(await other.memory.load(), agents(3));
  await one.memory.save([]);
  assertEquals([parts(), await other.memory.load()], [[], []]);
  for (const { engine } of [one, other]) await engine.close();
});

Deno.test("what an earlier version wrote is read, and damage is said once", async () => {
  const place = new MemoryPlace();
  const one = await memoryOf(place, "one");
  const other = await memoryOf(place, "other");
  await one.memory.save(agents(200));
  const [part] = [...place.records.keys()]
    .filter((key) => key.startsWith("discovery/"));
  const { text } = place.records.get(part!)!;
  place.set(part!, `0b6a4a40-0000-4000-8000-000000000000\n${text}`);
  assertEquals(await other.memory.load(), agents(200));
  place.set(part!, "{");
  for (let times = 0; times < 3; times++) {
    const found = await other.memory.load();
    assert(found.length > 0 && found.length < 200, `${found.length}`);
  }
  assertEquals(other.log.lines.length, 1);
  for (const { engine } of [one, other]) await engine.close();
});
