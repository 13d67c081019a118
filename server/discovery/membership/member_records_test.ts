import { assert, assertEquals } from "@std/assert";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import {
  MemoryPlace,
  MemoryStore,
} from "../../../tests/support/memory/memory_store.ts";
import { RecordedLog } from "../../../tests/support/watch/recorded_log.ts";
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

Deno.test("of an agent that a saving left in two parts, the last sight counts", async () => {
  const place = new MemoryPlace();
  const one = await memoryOf(place, "one");
  const other = await memoryOf(place, "other");
  const [agent] = agents(1);
  await one.memory.save([{ ...agent!, seenMs: 7 }]);
  await other.memory.save([{ ...agent!, seenMs: 9 }]);
  assertEquals(await one.memory.load(), [{ ...agent!, seenMs: 9 }]);
  for (const { engine } of [one, other]) await engine.close();
});
