import { assertEquals } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import { DynamicTable, fieldBytes } from "./dynamic_table.ts";
import { type HeaderField, ListMemo } from "./header_field.ts";
import { FieldIndex } from "./field_index.ts";
import { COOKIE_BYTES_INDEXED_MIN, isSecret } from "./indexing_rule.ts";

function entries(table: DynamicTable): HeaderField[] {
  return Array.from({ length: table.length }, (_, age) => table.get(age)!);
}

Deno.test("an entry costs its strings and 32 bytes", () => {
  assertEquals(fieldBytes({ name: "custom-key", value: "custom-value" }), 54);
});

Deno.test("the newest entry is first and the oldest leaves first", () => {
  const evicted: string[] = [];
  const table = new DynamicTable(100, (entry, serial) => {
    evicted.push(`${serial}=${entry.name}`);
  });
  for (const name of ["a", "b", "c", "d"]) table.insert({ name, value: "" });
  assertEquals(entries(table).map(({ name }) => name), ["d", "c", "b"]);
  assertEquals(evicted, ["0=a"]);
  assertEquals(table.sizeBytes, 99);
  assertEquals([table.get(3), table.get(-1)], [undefined, undefined]);
});

Deno.test("an entry that fills the table exactly stays, one byte more empties it", () => {
  const table = new DynamicTable(64);
  table.insert({ name: "a", value: "x".repeat(31) });
  assertEquals(table.length, 1);
  table.insert({ name: "a", value: "x".repeat(32) });
  assertEquals([table.length, table.sizeBytes], [0, 0]);
});

Deno.test("a smaller limit evicts at once, a larger one brings nothing back", () => {
  const table = new DynamicTable(4096);
  for (let count = 0; count < 100; count++) {
    table.insert({ name: "n", value: "" });
  }
  table.resize(66);
  assertEquals(table.length, 2);
  table.resize(0);
  table.resize(4096);
  assertEquals([table.length, table.sizeBytes], [0, 0]);
});

Deno.test("it behaves as an array with the newest entry first", async () => {
  await forAll(100, (prng) => {
    const table = new DynamicTable(500);
    let model: HeaderField[] = [];
    let limit = 500;
    for (let step = 0; step < 100; step++) {
      if (prng.below(10) === 0) {
        limit = prng.below(3000);
        table.resize(limit);
      } else {
        const field = { name: `${step}`, value: "v".repeat(prng.below(80)) };
        table.insert(field);
        model = [field, ...model];
      }
      while (sum(model) > limit) model.pop();
      assertEquals(entries(table), model);
      assertEquals(table.sizeBytes, sum(model));
    }
  });

  function sum(fields: readonly HeaderField[]): number {
    return fields.reduce((bytes, field) => bytes + fieldBytes(field), 0);
  }
});

const list = (value: string): readonly HeaderField[] =>
  Object.freeze([{ name: "x", value }]);

Deno.test("a frozen list is remembered as the object that it is", () => {
  const memo = new ListMemo<number>();
  const one = list("1");
  memo.set(one, 1);
  assertEquals(memo.get(one), 1);
  assertEquals(memo.get(list("1")), undefined);
  memo.clear();
  assertEquals(memo.get(one), undefined);
});

Deno.test("a list that may change is not remembered", () => {
  const memo = new ListMemo<number>();
  const open = [{ name: "x", value: "1" }];
  memo.set(open, 1);
  assertEquals(memo.get(open), undefined);
});

Deno.test("of five lists the last four are remembered", () => {
  const memo = new ListMemo<number>();
  const lists = [0, 1, 2, 3, 4].map((number) => list(String(number)));
  lists.forEach((each, index) => memo.set(each, index));
  assertEquals(lists.map((each) => memo.get(each)), [undefined, 1, 2, 3, 4]);
});

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
