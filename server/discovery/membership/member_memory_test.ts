import { assertEquals, assertMatch } from "@std/assert";
import { inMemoryFolder } from "../../../tests/support/memory/memory_folder.ts";
import { RecordedLog } from "../../../tests/support/watch/recorded_log.ts";
import { DirectoryStore } from "../../../neighbours/store/directory_store.ts";
import { MemberRecords, type RememberedAgent } from "./member_memory.ts";

function agent(id: string, seenMs: number): RememberedAgent {
  const offer = {
    service: "shop/web",
    namespace: "shop",
    name: "web",
    port: 80,
    protocol: "tcp" as const,
    appProtocol: "",
    address: "127.0.0.1",
    targetPort: 8080,
  };
  return { id, node: id, offers: [offer], seenMs, state: "unready" };
}

async function recordsIn(root: string, id: string, log: RecordedLog) {
  return new MemberRecords(await DirectoryStore.openLocal(root), id, log);
}

Deno.test("servers that share a directory know what each of them knew last", () =>
  inMemoryFolder(async (root) => {
    const log = new RecordedLog();
    const one = await recordsIn(root, "s1", log);
    const two = await recordsIn(root, "../s2", log);
    assertEquals(await one.load(), []);
    await one.save([agent("a", 1), agent("b", 5)]);
    await two.save([agent("b", 2), agent("c", 3)]);
    const third = await recordsIn(root, "s3", log);
    const found = await third.load();
    assertEquals(found.map(({ id, seenMs }) => [id, seenMs]).sort(), [
      ["a", 1],
      ["b", 5],
      ["c", 3],
    ]);
    assertEquals(found.find(({ id }) => id === "a"), agent("a", 1));
    assertEquals(log.take(), []);
  }));

Deno.test("a file that is not as it was written is said and left out", () =>
  inMemoryFolder(async (root) => {
    const log = new RecordedLog();
    const good = await recordsIn(root, "s1", log);
    await good.save([agent("a", 1)]);
    const bad = `${root}/discovery/members-0123456789abcdef.json`;
    const whole = { format: "tunnel-members", version: 1 };
    for (
      const text of [
        "",
        "{",
        "null",
        JSON.stringify({ ...whole, version: 2, agents: [] }),
        JSON.stringify({ ...whole, agents: [{ id: "x" }] }),
        JSON.stringify({
          ...whole,
          agents: [{
            ...agent("x", 1),
            offers: [{ ...agent("x", 1).offers[0], protocol: "__proto__" }],
          }],
        }),
      ]
    ) {
      await Deno.writeTextFile(bad, text);
      const found = await (await recordsIn(root, "s1", log)).load();
      assertEquals(found.map(({ id }) => id), ["a"], text);
      assertMatch(log.take().join(), /warn: Cannot use .*members-0123/);
    }
    await Deno.remove(`${root}/discovery`, { recursive: true });
    await Deno.writeTextFile(`${root}/discovery`, "");
    const nowhere = await recordsIn(root, "s1", log);
    await nowhere.save([agent("a", 1)]);
    await nowhere.save([agent("a", 1)]);
    assertEquals(log.take().length, 1);
  }));

Deno.test("a directory has one file of each server, as versions before wrote it", () =>
  inMemoryFolder(async (root) => {
    const log = new RecordedLog();
    const memory = await recordsIn(root, "s1", log);
    await memory.save([agent("a", 1), agent("b", 2)]);
    const names = () =>
      [...Deno.readDirSync(`${root}/discovery`)].map(({ name }) => name);
    const [name, ...more] = names();
    assertMatch(name!, /^members-[0-9a-f]{16}\.json$/);
    assertEquals(more, []);
    await memory.save([]);
    assertEquals([names(), log.take()], [[], []]);
  }));
