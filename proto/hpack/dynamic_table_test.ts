import { assertEquals } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import { DynamicTable, fieldBytes } from "./dynamic_table.ts";
import type { HeaderField } from "./header_field.ts";

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
