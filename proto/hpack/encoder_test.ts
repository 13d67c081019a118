import {
  assert,
  assertEquals,
  assertStrictEquals,
  assertThrows,
} from "@std/assert";
import { forAll, type Prng } from "../../tests/support/memory/prng.ts";
import { NaiveHpackDecoder } from "../../tests/support/watch/naive_hpack.ts";
import { HpackDecoder } from "./decoder.ts";
import { EncoderHistory, HISTORY_LISTS_MAX, HpackEncoder } from "./encoder.ts";
import type { HeaderField } from "./header_field.ts";

function list(...lines: readonly string[]): HeaderField[] {
  return lines.map((line) => {
    const equals = line.indexOf("=");
    return { name: line.slice(0, equals), value: line.slice(equals + 1) };
  });
}

function grpcHead(timeout: string): HeaderField[] {
  return list(
    ":method=POST",
    ":scheme=http",
    ":path=/ProxyService/Proxy",
    ":authority=node-7.example:10250",
    "te=trailers",
    "content-type=application/grpc",
    "user-agent=tunnel",
    `grpc-timeout=${timeout}`,
  );
}

/** The fields as a strict peer reads them, which also checks the tables. */
function peer(): { read(block: Uint8Array): readonly HeaderField[] } {
  const decoder = new HpackDecoder();
  const naive = new NaiveHpackDecoder();
  return {
    read(block) {
      const result = decoder.decode(block);
      assert(!result.tooLarge);
      assertEquals(naive.decode(block), result.fields);
      return result.fields;
    },
  };
}

Deno.test("the head of a call that repeats takes a byte a field", () => {
  const encoder = new HpackEncoder();
  const reader = peer();
  reader.read(encoder.encode(grpcHead("10S")));
  const again = encoder.encode(grpcHead("10S"));
  assertEquals(again.length, 8);
  assertEquals(reader.read(again), grpcHead("10S"));
  const other = encoder.encode(grpcHead("9999m"));
  assert(other.length <= 14, `took ${other.length} bytes`);
  assertEquals(reader.read(other), grpcHead("9999m"));
});

Deno.test("values that change with each message do not fill the table", () => {
  const encoder = new HpackEncoder();
  for (let count = 0; count < 1000; count++) {
    encoder.encode(list(
      `grpc-timeout=${count}m`,
      `content-length=${count}`,
      `date=day ${count}`,
    ));
  }
  // The name of the one that the static table does not know.
  assertEquals(encoder.tableBytes, "grpc-timeout".length + "0m".length + 32);
});

Deno.test("a name whose values never repeat stops pushing others out", () => {
  const encoder = new HpackEncoder();
  const reader = peer();
  reader.read(encoder.encode(list("stable=value")));
  let bytes = 0;
  for (let count = 0; count < 400; count++) {
    reader.read(encoder.encode(list(`my-id=${count}`)));
    const block = encoder.encode(list("stable=value"));
    bytes += block.length;
    reader.read(block);
  }
  assertEquals(bytes, 400);
});

Deno.test("a value that starts to repeat is indexed again before long", () => {
  const encoder = new HpackEncoder();
  for (let count = 0; count < 100; count++) encoder.encode(list(`id=${count}`));
  for (let count = 0; count < 8; count++) encoder.encode(list("id=same"));
  assertEquals(encoder.encode(list("id=same")).length, 1);
});

Deno.test("secrets are never indexed: by mark, by name and short cookies", () => {
  const secrets: HeaderField[] = [
    ...list("authorization=Bearer x", "proxy-authorization=y", "cookie=a=b"),
    { name: "x-token", value: "z", neverIndex: true },
  ];
  const encoder = new HpackEncoder();
  for (let round = 0; round < 2; round++) {
    const fields = peer().read(encoder.encode(secrets));
    assertEquals(
      fields,
      secrets.map((field) => ({ ...field, neverIndex: true })),
    );
    assertEquals(encoder.tableBytes, 0);
  }
  encoder.encode(list(`cookie=session=${"0".repeat(32)}`));
  assertEquals(
    encoder.encode(list(`cookie=session=${"0".repeat(32)}`)).length,
    1,
  );
});

Deno.test("a secret is not written as the index of an equal field", () => {
  const encoder = new HpackEncoder();
  encoder.encode(list("x-token=z"));
  const secret = { name: "x-token", value: "z", neverIndex: true };
  assertEquals(encoder.encode([secret])[0]! & 0xf0, 0x10);
});

Deno.test("Huffman is used only when it is shorter", () => {
  const encoder = new HpackEncoder();
  const plain = encoder.encode([{
    name: ":path",
    value: "<>\x00",
    neverIndex: true,
  }]);
  assertEquals(plain.toHex(), "14033c3e00");
  const coded = encoder.encode([{
    name: ":path",
    value: "aaaa",
    neverIndex: true,
  }]);
  assertEquals(coded.toHex(), "148318c63f");
});

Deno.test("a field larger than half the table leaves the table alone", () => {
  const encoder = new HpackEncoder();
  encoder.encode(list("a=b"));
  encoder.encode(list(`big=${"x".repeat(2100)}`));
  assertEquals(encoder.tableBytes, 34);
});

Deno.test("a code point above 255 is our bug and changes nothing", () => {
  const encoder = new HpackEncoder();
  for (const field of [{ name: "a", value: "€" }, { name: "€", value: "" }]) {
    assertThrows(
      () => encoder.encode([...list("first=1"), field]),
      TypeError,
      "8364",
    );
    assertEquals(encoder.tableBytes, 0);
  }
});

const UPDATE_0 = "20";
const UPDATE_100 = "3f45";
const UPDATE_4096 = "3fe11f";

Deno.test("size updates follow the peer's setting: the lowest, then the last", () => {
  const rows: [readonly number[], string][] = [
    [[], ""],
    [[4096], ""],
    [[100], UPDATE_100],
    [[0], UPDATE_0],
    [[100, 4096], UPDATE_100 + UPDATE_4096],
    [[4096, 100, 0, 100], UPDATE_0 + UPDATE_100],
    // Our own limit stays, so nothing changes for the peer.
    [[65_536], ""],
    [[0, 65_536], UPDATE_0 + UPDATE_4096],
  ];
  for (const [settings, expected] of rows) {
    const encoder = new HpackEncoder();
    encoder.encode(list("a=b"));
    for (const size of settings) encoder.setPeerTableSize(size);
    assertEquals(encoder.encode(list(":method=GET")).toHex(), expected + "82");
    assertEquals(encoder.encode(list(":method=GET")).toHex(), "82");
  }
});

Deno.test("a smaller limit of our own is signalled with the first block", () => {
  const encoder = new HpackEncoder({ tableSizeMax: 100 });
  assertEquals(encoder.encode(list(":method=GET")).toHex(), UPDATE_100 + "82");
  encoder.setPeerTableSize(4096);
  assertEquals(encoder.encode(list(":method=GET")).toHex(), "82");
});

Deno.test("a larger limit of our own waits for the peer's setting", () => {
  const encoder = new HpackEncoder({ tableSizeMax: 10_000 });
  assertEquals(encoder.encode(list(":method=GET")).toHex(), "82");
  encoder.setPeerTableSize(8192);
  assertEquals(encoder.encode(list(":method=GET")).toHex(), "3fe13f82");
});

Deno.test("random lists survive while the table is resized", async () => {
  await forAll(150, (prng) => {
    const encoder = new HpackEncoder({ tableSizeMax: 2000 });
    const decoder = new HpackDecoder({ tableSizeMax: 4096 });
    const naive = new NaiveHpackDecoder(4096);
    for (let step = 0; step < 20; step++) {
      while (prng.below(5) === 0) encoder.setPeerTableSize(prng.below(4097));
      const fields = randomList(prng);
      const block = encoder.encode(fields).slice();
      assertEquals(decoder.decode(block), { tooLarge: false, fields });
      assertEquals(naive.decode(block), fields);
      assertEquals(decoder.tableBytes, encoder.tableBytes);
    }
  });
});

function randomList(prng: Prng): HeaderField[] {
  return Array.from({ length: prng.below(8) }, () => {
    const name = prng.pick([
      ":path",
      "te",
      "date",
      "a",
      "b",
      "c",
      "x-long-name",
    ]);
    const value = prng.below(4) === 0
      ? String.fromCharCode(...prng.bytes(prng.below(300)))
      : `${prng.below(12)}`;
    return prng.below(6) === 0
      ? { name, value, neverIndex: true }
      : { name, value };
  });
}

type List = readonly HeaderField[];

const frozen = (fields: Readonly<Record<string, string>>): List =>
  Object.freeze(
    Object.entries(fields).map(([name, value]) => ({ name, value })),
  );

const HEAD = frozen({ ":status": "200", "content-type": "application/grpc" });
const OTHER_HEAD = frozen({ ":status": "200", "server": "another" });
const TRAILERS = frozen({ "grpc-status": "0" });
const LONG = frozen({ "x-name": "a value that is worth an entry" });

/** What one encoder makes of `lists`, each block a copy. */
function blocksOf(encoder: HpackEncoder, lists: readonly List[]) {
  return lists.map((fields) => encoder.encode(fields).slice());
}

/** Open lists are never shared, so this encoder works alone. */
function blocksAlone(lists: readonly List[]) {
  return blocksOf(new HpackEncoder(), lists.map((fields) => [...fields]));
}

Deno.test("encoders that begin alike write what each would have written alone", () => {
  const conversations = [
    [HEAD, TRAILERS],
    [HEAD, TRAILERS],
    [HEAD, TRAILERS, HEAD, TRAILERS, HEAD, TRAILERS, HEAD],
    [OTHER_HEAD, TRAILERS],
    [HEAD, LONG, TRAILERS, LONG],
    [HEAD, [...LONG], TRAILERS],
    [HEAD, LONG, TRAILERS, LONG],
    [HEAD, TRAILERS, HEAD, TRAILERS, HEAD, TRAILERS, HEAD],
  ];
  for (const lists of conversations) {
    const blocks = blocksOf(new HpackEncoder(), lists);
    assertEquals(blocks, blocksAlone(lists));
    const decoder = new HpackDecoder();
    const decoded = blocks.map((block) => decoder.decode(block));
    assertEquals(
      decoded,
      lists.map((fields) => ({ tooLarge: false, fields })),
    );
  }
});

Deno.test("a peer's table size is obeyed wherever the encoder is", () => {
  for (let before = 0; before < 3; before++) {
    const lists = [HEAD, TRAILERS, LONG, TRAILERS];
    const encode = (each: (fields: List) => List) => {
      const encoder = new HpackEncoder();
      const decoder = new HpackDecoder();
      return lists.map((fields, index) => {
        if (index === before) encoder.setPeerTableSize(64);
        const block = encoder.encode(each(fields)).slice();
        assertEquals(decoder.decode(block), { tooLarge: false, fields });
        return block;
      });
    };
    assertEquals(encode((it) => it), encode((it) => [...it]));
  }
});

Deno.test("a history ends after a few lists", () => {
  let history = new EncoderHistory();
  for (let number = 0; number < HISTORY_LISTS_MAX; number++) {
    history.add(HEAD, Uint8Array.of(number));
    const step = history.step(HEAD)!;
    assertEquals(step.bytes, Uint8Array.of(number));
    history = step.after;
  }
  history.add(HEAD, Uint8Array.of(9));
  assertStrictEquals(history.step(HEAD), undefined);
});

Deno.test("secrets and open lists are not kept", () => {
  const history = new EncoderHistory();
  const lists: List[] = [
    [...HEAD],
    frozen({ authorization: "Bearer secret" }),
    Object.freeze([{ name: "x-key", value: "secret", neverIndex: true }]),
  ];
  for (const fields of lists) {
    history.add(fields, Uint8Array.of(1));
    assertStrictEquals(history.step(fields), undefined);
  }
});
