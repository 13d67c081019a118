import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import {
  FIRST_BLOCK_BYTES_MAX,
  FIRST_BLOCKS_MAX,
  FirstBlocks,
  HpackDecoder,
} from "./decoder.ts";
import { DynamicTable, TABLE_SIZE_DEFAULT } from "./dynamic_table.ts";
import { HpackEncoder } from "./encoder.ts";
import type { HeaderField } from "./header_field.ts";

const fieldsOf = (fields: Readonly<Record<string, string>>): HeaderField[] =>
  Object.entries(fields).map(([name, value]) => ({ name, value }));

let names = 0;

/** A head that no other test has. */
const newHead = () =>
  fieldsOf({
    ":method": "POST",
    ":path": `/first/${++names}`,
    "content-type": "application/grpc",
    "x-repeats": "again and again",
  });

function decoded(decoder: HpackDecoder, block: Uint8Array) {
  const header = decoder.decode(block);
  assert(!header.tooLarge);
  return header.fields;
}

Deno.test("connections that begin alike get one list, from the second on", () => {
  const fields = newHead();
  const block = new HpackEncoder().encode(fields).slice();
  const lists = [0, 1, 2].map(() => decoded(new HpackDecoder(), block));
  assertEquals(lists, [fields, fields, fields]);
  // Nobody remembers what a head means that came once.
  assertEquals(lists.map(Object.isFrozen), [false, true, true]);
  assertStrictEquals(lists[1], lists[2]);
});

Deno.test("the table is in step after a known first block", () => {
  const [first, second] = [newHead(), newHead()];
  for (let connection = 0; connection < 3; connection++) {
    const [encoder, decoder] = [new HpackEncoder(), new HpackDecoder()];
    for (const fields of [first, second, first, second]) {
      assertEquals(decoded(decoder, encoder.encode(fields)), fields);
      assertEquals(decoder.tableBytes, encoder.tableBytes);
    }
  }
});

Deno.test("a known first block is a block like others later on", () => {
  const [first, second] = [newHead(), newHead()];
  const alone = new HpackEncoder().encode(first).slice();
  decoded(new HpackDecoder(), alone);
  const decoder = new HpackDecoder();
  decoded(decoder, new HpackEncoder().encode(second));
  const before = decoder.tableBytes;
  // Literals, so they mean the same in any table, and are inserted again.
  assertEquals(decoded(decoder, alone), first);
  assert(decoder.tableBytes > before);
});

Deno.test("a list that was fine for one is too long for another", () => {
  const fields = newHead();
  const block = new HpackEncoder().encode(fields).slice();
  for (let again = 0; again < 2; again++) decoded(new HpackDecoder(), block);
  const small = new HpackDecoder({ headerListBytesMax: 100 });
  assert(small.decode(block).tooLarge);
  const other = new HpackDecoder({ tableSizeMax: 100 });
  assertEquals(decoded(other, block), fields);
  assert(other.tableBytes <= 100);
});

Deno.test("secrets, long blocks and those that evict are not kept", () => {
  const evicting = new DynamicTable(TABLE_SIZE_DEFAULT);
  for (let count = 0; count < 50; count++) {
    evicting.insert({ name: "x", value: String(count).padStart(100) });
  }
  const empty = new DynamicTable(TABLE_SIZE_DEFAULT);
  const blocks = new FirstBlocks();
  const cases: [bytes: number, fields: HeaderField[], table: DynamicTable][] = [
    [1, fieldsOf({ authorization: "Bearer secret" }), empty],
    [2, fieldsOf({ cookie: "id=a secret that is longer than most" }), empty],
    [3, [{ name: "x", value: "secret", neverIndex: true }], empty],
    [FIRST_BLOCK_BYTES_MAX + 1, fieldsOf({ x: "y" }), empty],
    [4, fieldsOf({ x: "y" }), evicting],
  ];
  for (const [bytes, fields, table] of cases) {
    blocks.add(new Uint8Array(bytes), fields, table);
    assertStrictEquals(blocks.get(new Uint8Array(bytes)), undefined);
  }
  blocks.add(new Uint8Array(5), fieldsOf({ x: "y" }), empty);
  assertEquals(blocks.get(new Uint8Array(5))?.fields, fieldsOf({ x: "y" }));
});

Deno.test("of too many first blocks the oldest makes way", () => {
  const blocks = new FirstBlocks();
  const table = new DynamicTable(TABLE_SIZE_DEFAULT);
  for (let number = 0; number <= FIRST_BLOCKS_MAX; number++) {
    blocks.add(Uint8Array.of(number), [], table);
  }
  assertStrictEquals(blocks.get(Uint8Array.of(0)), undefined);
  assert(blocks.get(Uint8Array.of(FIRST_BLOCKS_MAX)) !== undefined);
});
