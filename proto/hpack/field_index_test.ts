import { assertEquals } from "@std/assert";
import { FieldIndex } from "./field_index.ts";
import { COOKIE_BYTES_INDEXED_MIN, isSecret } from "./indexing_rule.ts";

function insert(index: FieldIndex, name: string, value: string): void {
  index.insert({ name, value }, index.record(name));
}

function find(index: FieldIndex, name: string, value: string): number {
  return index.find(index.record(name), value);
}

function findName(index: FieldIndex, name: string): number {
  return index.findName(index.record(name));
}

Deno.test("static fields and names are found, the lowest index for a name", () => {
  const index = new FieldIndex(4096);
  assertEquals(find(index, ":method", "POST"), 3);
  assertEquals(findName(index, ":method"), 2);
  assertEquals(findName(index, "www-authenticate"), 61);
  assertEquals(find(index, ":method", "PUT"), 0);
  assertEquals(findName(index, "unheard-of"), 0);
});

Deno.test("dynamic fields move back with each insertion and a name means the newest", () => {
  const index = new FieldIndex(4096);
  insert(index, "a", "1");
  insert(index, "a", "2");
  insert(index, "b", "3");
  assertEquals(find(index, "a", "1"), 64);
  assertEquals(find(index, "a", "2"), 63);
  assertEquals(findName(index, "a"), 63);
  assertEquals(find(index, "b", "3"), 62);
});

Deno.test("an evicted field is not found, its name only while another entry has it", () => {
  const index = new FieldIndex(70);
  insert(index, "a", "1");
  insert(index, "a", "2");
  insert(index, "b", "3");
  assertEquals(find(index, "a", "1"), 0);
  assertEquals(findName(index, "a"), 63);
  insert(index, "b", "4");
  assertEquals(findName(index, "a"), 0);
});

Deno.test("an insertion that evicts the last entry of its own name keeps the name", () => {
  const index = new FieldIndex(40);
  insert(index, "a", "1");
  insert(index, "a", "2");
  assertEquals(find(index, "a", "1"), 0);
  assertEquals(find(index, "a", "2"), 62);
  insert(index, "b", "3");
  assertEquals(find(index, "a", "2"), 0);
});

Deno.test("names without an entry are forgotten, however many are asked for", () => {
  const index = new FieldIndex(100);
  for (let count = 0; count < 1000; count++) {
    insert(index, `name-${count}`, "");
    findName(index, `never-inserted-${count}`);
  }
  assertEquals(index.nameCount, 2);
});

Deno.test("cookies are secrets up to the length that can be guessed", () => {
  const cookie = (length: number) =>
    isSecret("cookie", "x".repeat(length), "index");
  assertEquals(cookie(COOKIE_BYTES_INDEXED_MIN - 1), true);
  assertEquals(cookie(COOKIE_BYTES_INDEXED_MIN), false);
});
