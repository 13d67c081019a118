import { assertEquals } from "@std/assert";
import { memoryFolder } from "../../tests/support/memory/memory_folder.ts";
import { createAuthorities } from "./authorities.ts";
import {
  type DuplicateRecord,
  DuplicateRecords,
  isNow,
  REWRITTEN_MS,
} from "./duplicate_records.ts";
import { DirectoryStore } from "../../neighbours/store/directory_store.ts";

const SEEN = "2030-01-01T00:00:00Z";
const RECORD: DuplicateRecord = {
  node: "gw",
  since: SEEN,
  lastSeen: SEEN,
  isOver: false,
  instances: [{ address: "10.0.0.7:1", instance: "00ff", since: SEEN }],
};

Deno.test("what was seen of a node is there until somebody dealt with it", async () => {
  const root = memoryFolder();
  const { state } = await DirectoryStore.openOrCreate(root, createAuthorities);
  const records = new DuplicateRecords(state);
  assertEquals((await records.list()).size, 0);
  await records.remove("gw");
  await records.write(RECORD);
  // A damaged one, one of nobody and one half written are left out.
  const folder = state.path("duplicates");
  await Deno.writeTextFile(`${folder}/bad.json`, "{");
  await Deno.writeTextFile(`${folder}/none.json`, "null");
  await Deno.writeTextFile(`${folder}/part.json`, '{"since":"x"}');
  await Deno.writeTextFile(`${folder}/..json`, JSON.stringify(RECORD));
  assertEquals([...await records.list()], [["gw", RECORD]]);
  await records.remove("gw");
  assertEquals((await records.list()).size, 0);
  await Deno.remove(root, { recursive: true });
});

Deno.test("it is so now while a server says so again and again", () => {
  const seenMs = Date.parse(SEEN);
  assertEquals(isNow(RECORD, seenMs), true);
  assertEquals(isNow(RECORD, seenMs + 2 * REWRITTEN_MS), true);
  assertEquals(isNow(RECORD, seenMs + 3 * REWRITTEN_MS), false);
  assertEquals(isNow({ ...RECORD, isOver: true }, seenMs), false);
});
