import { assert, assertEquals } from "@std/assert";
import { dnsAnswer, soa } from "../../tests/support/peers/dns_server.ts";
import { forAll } from "../../tests/support/memory/prng.ts";
import {
  ADDRESSES_MAX,
  ALIASES_MAX,
  encodeQuestion,
  readReply,
  RECORDS_MAX,
} from "./dns_message.ts";

const QUESTION = { name: "db.test", type: "A" } as const;
const ASKED = { ...QUESTION, id: 7 };

function read(bytes: Uint8Array) {
  return readReply(Uint8Array.from(bytes), QUESTION, 7);
}

const a = (name: string, data: string, ttl = 60) =>
  ({ type: "A", name, ttl, data }) as const;
const alias = (name: string, data: string, ttl = 60) =>
  ({ type: "CNAME", name, ttl, data }) as const;

Deno.test("addresses are taken with the shortest time of what leads to them", () => {
  const bytes = dnsAnswer(ASKED, [
    alias("DB.test", "www.test", 30),
    a("www.test", "10.0.0.1", 60),
    a("www.test", "10.0.0.2", 50),
    a("www.test", "10.0.0.1", 60),
  ]);
  assertEquals(read(bytes), {
    kind: "answer",
    addresses: ["10.0.0.1", "10.0.0.2"],
    ttl: 30,
    exists: true,
  });
});

Deno.test("what answers another question is no answer", () => {
  const good = [a("db.test", "10.0.0.1")];
  const others = [
    dnsAnswer({ ...ASKED, id: 8 }, good),
    dnsAnswer({ ...ASKED, name: "db.tesf" }, good),
    dnsAnswer({ ...ASKED, type: "AAAA" }, good),
    encodeQuestion(QUESTION, 7, true),
    new Uint8Array(0),
    new Uint8Array(11),
  ];
  for (const bytes of others) assertEquals(read(bytes), undefined);
});

Deno.test("addresses of names that were not asked for are not believed", () => {
  const bytes = dnsAnswer(ASKED, [
    a("bank.test", "10.6.6.6"),
    alias("bank.test", "db.test"),
    { type: "AAAA", name: "db.test", ttl: 60, data: "::6" },
  ], { authorities: [soa(9)] });
  assertEquals(read(bytes), {
    kind: "answer",
    addresses: [],
    ttl: 9,
    exists: true,
  });
});

Deno.test("a name that does not exist says for how long", () => {
  const bytes = dnsAnswer(ASKED, [], { code: 3, authorities: [soa(300)] });
  assertEquals(read(bytes), {
    kind: "answer",
    addresses: [],
    ttl: 300,
    exists: false,
  });
});

Deno.test("codes and flags are told apart", () => {
  const kindOf = (code: number) => read(dnsAnswer(ASKED, [], { code }))?.kind;
  assertEquals([1, 2, 4, 5].map(kindOf), [
    "plainer",
    "failed",
    "plainer",
    "failed",
  ]);
  assertEquals(read(dnsAnswer(ASKED, [], { truncated: true })), {
    kind: "truncated",
  });
  const bare = new Uint8Array(12);
  bare.set([0, 7, 0x80, 1]);
  assertEquals(read(bare), { kind: "plainer" });
});

Deno.test("aliases that go round in circles end", () => {
  const loop = [alias("db.test", "b.test"), alias("b.test", "db.test")];
  assertEquals(read(dnsAnswer(ASKED, loop))?.kind, "failed");
  const names = Array.from({ length: ALIASES_MAX + 2 }, (_, i) => `n${i}.test`);
  const chain = [
    alias("db.test", "n0.test"),
    ...names.slice(1).map((name, index) => alias(names[index]!, name)),
    a(names.at(-1)!, "10.0.0.1"),
  ];
  assertEquals(read(dnsAnswer(ASKED, chain))?.kind, "failed");
});

Deno.test("names that point at themselves, forwards or for ever are refused", () => {
  const head = [0, 7, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0];
  const question = [2, 0x64, 0x62, 4, 0x74, 0x65, 0x73, 0x74, 0, 0, 1, 0, 1];
  const record = [0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 0, 0, 1];
  const named = (...name: number[]) =>
    read(Uint8Array.from([...head, ...question, ...name, ...record]));
  assertEquals(named(0xc0, 12)?.kind, "answer");
  for (const name of [[0xc0, 25], [0xc0, 27], [0xff, 0xff], [0x80, 0], [63]]) {
    assertEquals(named(...name)?.kind, "failed", `${name}`);
  }
  // One letter, and on to the one before: hundreds of bytes from a few.
  const data = Array.from({ length: 200 }, (_, index) => {
    const to = index === 0 ? 12 : 37 + (index - 1) * 4;
    return [1, 0x61, 0xc0 | (to >> 8), to & 0xff];
  }).flat();
  const last = 37 + 199 * 4;
  head[7] = 2;
  const text = [
    0xc0,
    12,
    0,
    16,
    0,
    1,
    0,
    0,
    0,
    60,
    data.length >> 8,
    data.length & 255,
  ];
  assertEquals(
    named(...text, ...data, 0xc0 | (last >> 8), last & 255)?.kind,
    "failed",
  );
  const near = 37 + 9 * 4;
  assertEquals(
    named(...text, ...data, 0xc0 | (near >> 8), near & 255)?.kind,
    "answer",
  );
});

Deno.test("so many records and addresses are taken and no more", () => {
  const many = Array.from(
    { length: RECORDS_MAX * 2 },
    (_, index) => a("db.test", `10.0.${index >> 8}.${index & 255}`),
  );
  const reply = read(dnsAnswer(ASKED, many));
  assert(reply?.kind === "answer");
  assertEquals(reply.addresses.length, ADDRESSES_MAX);
});

Deno.test("a time with its highest bit set is none", () => {
  const bytes = dnsAnswer(ASKED, [a("db.test", "10.0.0.1", 0x80000001)]);
  const reply = read(bytes);
  assert(reply?.kind === "answer");
  assertEquals(reply.ttl, 0);
});

Deno.test("nothing that comes makes it throw", async () => {
  const good = dnsAnswer(ASKED, [
    alias("db.test", "www.test"),
    a("www.test", "10.0.0.1"),
  ], { authorities: [soa(3)] });
  await forAll(2_000, (random) => {
    const bytes = Uint8Array.from(good)
      .slice(0, random.below(good.length + 1));
    for (let times = random.below(6); times > 0; times--) {
      bytes[random.below(bytes.length)] = random.below(256);
    }
    read(bytes);
  });
});
