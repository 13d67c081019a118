import { assert, assertEquals } from "@std/assert";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import {
  MemoryPlace,
  MemoryStore,
} from "../../../tests/support/memory/memory_store.ts";
import { settled } from "../../../tests/support/memory/conduit_probe.ts";
import { FakeTimers } from "../../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../../tests/support/watch/recorded_log.ts";
import { RemoteEngine } from "../../state/remote_engine.ts";
import type { RememberedAgent } from "./member_memory.ts";
import { MemberRecords } from "./member_records.ts";
import { GONE_MS, PeerFiles } from "./peer_files.ts";

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
  const engine = await RemoteEngine.open({
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

Deno.test("parts of two savings are not mixed, and damage is said once", async () => {
  const place = new MemoryPlace();
  const one = await memoryOf(place, "one");
  const other = await memoryOf(place, "other");
  await one.memory.save(agents(200));
  const [part] = [...place.records.keys()]
    .filter((key) => key.startsWith("discovery/"));
  const { text } = place.records.get(part!)!;
  place.set(part!, `another\n${text}`);
  assertEquals(await other.memory.read(one.memory.path), undefined);
  assertEquals(other.log.lines.length, 0);
  const [stamp] = text.split("\n");
  place.set(part!, `${stamp}\n{`);
  for (let times = 0; times < 3; times++) {
    assertEquals(await other.memory.read(one.memory.path), undefined);
  }
  assertEquals(other.log.lines.length, 1);
  place.set(one.memory.path, "{");
  assertEquals(await other.memory.load(), []);
  for (const { engine } of [one, other]) await engine.close();
});

Deno.test("a server learns of the agents of another one, and when that is gone", async () => {
  const place = new MemoryPlace();
  const one = await memoryOf(place, "one");
  const other = await memoryOf(place, "other");
  await one.memory.save(agents(2));
  const timers = new FakeTimers();
  const peers = new PeerFiles(other.memory, timers);
  peers.start(() => {});
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 1_000) {
      timers.advance(1_000);
      for (let turns = 0; turns < 20; turns++) await settled();
    }
  };
  await pass(4_000);
  const states = () => [...peers.current.values()].map(({ state }) => state);
  assertEquals(states(), ["ready", "ready"]);
  await pass(GONE_MS + 4_000);
  assertEquals(states(), ["unready", "unready"]);
  await peers.stop();
  for (const { engine } of [one, other]) await engine.close();
});
