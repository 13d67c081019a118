import { assert, assertEquals } from "@std/assert";
import {
  canonicalIp,
  formatIpAddress,
  isLoopback,
  isLoopbackHost,
  parseIpAddress,
  parseIpPrefix,
  prefixContains,
} from "./ip_address.ts";
import { parseIdentifiers } from "./identifiers.ts";
import { addressOf, identifierKey, nameKey, prefixKey } from "./normal_form.ts";
import { patience } from "../../tests/support/watch/patience.ts";

/** Each line is one thing in all its spellings; the normal form comes first. */
const NAMES: readonly (readonly string[])[] = [
  ["gw", "GW", "gw.", "Gw.", "gw.."],
  ["db.internal", "DB.Internal", "db.internal.", "db.INTERNAL.."],
  ["abc", "ABC", "aBc."],
  ["10.9.0.2", "::ffff:10.9.0.2", "::FFFF:a09:2", "0:0:0:0:0:ffff:0a09:0002"]
    .concat("[::ffff:10.9.0.2]", "10.9.0.2.", "10.9.2", "10.589826")
    .concat("168361986", "0xa090002", "0x0A.9.0.2", "012.9.0.2", "10.011.2")
    .concat("0x0a.0x9.0x2", "01202200002"),
  ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "017700000001", "0x7f000001"]
    .concat("127.0.1", "0177.1", "::ffff:7f00:1"),
  ["::1", "0:0:0:0:0:0:0:1", "[::1]", "::0001", "0::1", "::1%eth0"],
  ["fd00::9", "FD00::9", "fd00:0:0::9", "[FD00::0009]", "fd00::9%1"],
  ["0.0.0.0", "0", "0x0", "00", "0.0"],
];

Deno.test("one thing has one normal form, however it is written", () => {
  for (const [form, ...others] of NAMES) {
    for (const text of [form!, ...others]) {
      assertEquals(nameKey(text), form, text);
      assertEquals(nameKey(nameKey(text)), form, `${text}, twice`);
    }
  }
});

Deno.test("a million dots cost no more than a million letters", () => {
  const text = `a${".".repeat(1_000_000)}a.`;
  const startMs = performance.now();
  assertEquals(nameKey(text).length, text.length - 1);
  // By a look from each dot it is a quarter of an hour.
  assert(performance.now() - startMs < patience(1_000));
});

Deno.test("different things have different normal forms", () => {
  const texts = ["a", "a.b", ".a", "a-", "10.9.0.2", "10.9.0.2x", "10.9.0.256"]
    .concat("1.2.3.4.5", "08", "0x", "1.2.3.08", "4294967296", "-1", "1e3")
    .concat("10..9", "::g", ".", "..", "10.9.0.2/32", "a b", "abc%2e")
    .concat("::ffff:10.9.0.2:80", "[10.9.0.2]", "0x1.0xg", "1_0");
  // Of these `0x` is C's zero, and two are dots and nothing else.
  assertEquals(nameKey("0x"), "0.0.0.0");
  const forms = texts.map(nameKey);
  assertEquals(new Set(forms).size, texts.length, forms.join(" "));
});

Deno.test("addresses are told from names by what a resolver makes of them", () => {
  assertEquals(addressOf("gw"), undefined);
  assertEquals(addressOf("7gw"), undefined);
  assertEquals(addressOf("10.9.0.256"), undefined);
  assertEquals(addressOf("256.1"), undefined);
  assertEquals(addressOf("1.16777216"), undefined);
  assertEquals(formatIpAddress(addressOf("1.16777215")!), "1.255.255.255");
  assertEquals(
    formatIpAddress(addressOf("255.255.255.255")!),
    "255.255.255.255",
  );
});

Deno.test("a prefix is what it covers", () => {
  for (
    const [form, ...others] of [
      ["10.1.0.0/16", "10.1.2.3/16", "10.1.0.0/016"],
      ["fd00::/8", "FD00::/8", "fdff::1/8", "fd00:0:0:0::/8"],
      ["nonsense", "NONSENSE"],
      ["10.1.0.0/33"],
    ]
  ) for (const text of [form!, ...others]) assertEquals(prefixKey(text), form);
});

Deno.test("identifiers come in their normal form, percent signs and all", () => {
  for (const reader of ["server", "flag"] as const) {
    const read = (text: string) => parseIdentifiers(text, reader);
    for (const text of ["gw", "GW.", "%67w", "g%57", "gw%2e", "%47%57%2E"]) {
      assertEquals(read(`host=${text}`).host, ["gw"], text);
      assertEquals(read(`uid=${text}`).uid, ["gw"], text);
    }
    assertEquals(read("host=10.9.2&host=::ffff:10.9.0.2").host, ["10.9.0.2"]);
    assertEquals(read("ipv4=::ffff:10.9.0.2").ipv4, ["10.9.0.2"]);
    assertEquals(read("cidr=10.1.2.3/16&cidr=10.1.0.0/16").cidr, [
      "10.1.0.0/16",
    ]);
    assertEquals(read("host=&uid=&host=gw").host, ["gw"]);
  }
  // A second coat of percent signs is another name.
  assertEquals(parseIdentifiers("host=%2567w", "server").host, ["%67w"]);
});

Deno.test("a name under another key's clothes matches nobody", () => {
  const read = parseIdentifiers("ipv4=gw&ipv6=gw&cidr=gw&ipv4=10.9", "server");
  assertEquals([read.ipv4, read.ipv6, read.cidr], [[], [], []]);
});

Deno.test("an agent's id is kept as it is", () => {
  assertEquals(identifierKey("id", "GW."), "GW.");
  assertEquals(identifierKey("uid", "GW."), "gw");
  assertEquals(identifierKey("host", "::ffff:10.9.0.2"), "10.9.0.2");
  assertEquals(identifierKey("cidr", "10.1.2.3/16"), "10.1.0.0/16");
});

Deno.test("canonicalIp() gives equal addresses one spelling", () => {
  assertEquals(canonicalIp("0:0:0:0:0:0:0:1"), "::1");
  assertEquals(canonicalIp("2001:DB8:0:0:1:0:0:1"), "2001:db8::1:0:0:1");
  assertEquals(canonicalIp("::ffff:10.0.0.1"), "10.0.0.1");
  assertEquals(canonicalIp("::"), "::");
  assertEquals(canonicalIp("10.0.0.1"), "10.0.0.1");
});

Deno.test("canonicalIp() leaves names alone", () => {
  for (const name of ["node1", "1.2.3", "256.1.1.1", "01.2.3.4", "::g", ""]) {
    assertEquals(canonicalIp(name), name);
    assertEquals(parseIpAddress(name), undefined);
  }
});

Deno.test("a prefix contains its addresses and no others", () => {
  const ten = parseIpPrefix("10.1.2.3/9")!;
  assert(prefixContains(ten, parseIpAddress("10.127.0.1")!));
  assert(!prefixContains(ten, parseIpAddress("10.128.0.1")!));
  const all = parseIpPrefix("0.0.0.0/0")!;
  assert(prefixContains(all, parseIpAddress("8.8.8.8")!));
  assert(!prefixContains(all, parseIpAddress("2001:db8::1")!));
  const v6 = parseIpPrefix("2001:db8::/33")!;
  assert(prefixContains(v6, parseIpAddress("2001:db8:7fff::1")!));
  assert(!prefixContains(v6, parseIpAddress("2001:db8:8000::1")!));
});

Deno.test("parseIpPrefix() refuses what is not a prefix", () => {
  for (const text of ["10.0.0.0", "10.0.0.0/33", "::/129", "a/8", "/8", "1/"]) {
    assertEquals(parseIpPrefix(text), undefined, text);
  }
});

Deno.test("what is loopback has one answer, and only addresses that are get it", () => {
  // deno-fmt-ignore: the columns are the point.
  const cases: readonly (readonly [text: string, address: boolean, host: boolean])[] = [
    ["127.0.0.1",                true,  true],
    ["127.255.255.254",          true,  true],
    ["::1",                      true,  true],
    ["[::1]",                    true,  true],
    ["0:0:0:0:0:0:0:1",          true,  true],
    ["[0:0::0:1]",               true,  true],
    ["::ffff:127.0.0.1",         true,  true],
    ["[::FFFF:7f00:1]",          true,  true],
    ["localhost",                false, true],
    ["LOCALHOST",                false, true],
    ["LocalHost",                false, true],
    // Others' resolvers ask DNS for these, and DNS may say anything.
    ["localhost.",               false, false],
    ["db.localhost",             false, false],
    ["localhost.evil.example",   false, false],
    ["[localhost]",              false, false],
    // No addresses: some readers take them for one, and others look them up.
    ["127.0.0.300",              false, false],
    ["127.1",                    false, false],
    ["127.0.0.01",               false, false],
    ["2130706433",               false, false],
    ["[127.0.0.1]",              false, false],
    ["::1%lo",                   false, false],
    ["127.0.0.1:80",             false, false],
    ["127.0.0.1.evil.example",   false, false],
    // Everybody's, or somebody else's.
    ["",                         false, false],
    ["0.0.0.0",                  false, false],
    ["::",                       false, false],
    ["::2",                      false, false],
    ["::127.0.0.1",              false, false],
    ["10.0.0.1",                 false, false],
    ["128.0.0.1",                false, false],
    ["fe80::1",                  false, false],
  ];
  for (const [text, address, host] of cases) {
    assertEquals(isLoopback(text), address, text);
    assertEquals(isLoopbackHost(text), host, text);
    const bytes = parseIpAddress(text);
    if (bytes !== undefined) assertEquals(isLoopback(bytes), address, text);
  }
});
