import {
  assert,
  assertEquals,
  assertMatch,
  assertNotEquals,
  assertThrows,
} from "@std/assert";
import {
  canonicalIp,
  formatIpAddress,
  isLoopback,
  isLoopbackHost,
  parseIpAddress,
  parseIpPrefix,
  prefixContains,
} from "./ip_address.ts";
import {
  formatIdentifiers,
  IDENTIFIERS_LENGTH_MAX,
  IdentifiersError,
  NO_IDENTIFIERS,
  parseIdentifiers,
} from "./identifiers.ts";
import { addressOf, identifierKey, nameKey, prefixKey } from "./normal_form.ts";
import { patience } from "../../tests/support/watch/patience.ts";
import {
  bracketed,
  hostOf,
  hostPort,
  isIpv4Lookalike,
  plainName,
  portOf,
  withoutBrackets,
} from "./host_port.ts";
import { clipped, hasUnseen, kept, quoted, showUnseen } from "./quoted.ts";
import { compareVersions, versionIn } from "./peer_identity.ts";
import { ConnectionIds, readConnectionId } from "./connection_id.ts";
import { formatTraceparent, readTraceparent } from "./trace_context.ts";
import { codeNamed, codeOfWords } from "./dial_error.ts";

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

Deno.test("identifiers are read from a URL query", () => {
  assertEquals(
    parseIdentifiers(
      "host=node1&host=node2&ipv4=1.2.3.4&ipv6=%3A%3A1&cidr=10.0.0.0/8" +
        "&uid=U-1&default-route=true",
      "flag",
    ),
    {
      host: ["node1", "node2"],
      ipv4: ["1.2.3.4"],
      ipv6: ["::1"],
      cidr: ["10.0.0.0/8"],
      uid: ["u-1"],
      defaultRoute: true,
    },
  );
});

Deno.test("nothing is announced by an empty text", () => {
  assertEquals(parseIdentifiers("", "flag"), NO_IDENTIFIERS);
});

Deno.test("equal hosts get one spelling", () => {
  const read = parseIdentifiers(
    "host=NODE1.Example&host=node1.example&ipv6=0:0:0:0:0:0:0:1&ipv6=::1" +
      "&ipv6=2001:DB8::a",
    "flag",
  );
  assertEquals(read.host, ["node1.example"]);
  assertEquals(read.ipv6, ["::1", "2001:db8::a"]);
});

Deno.test("the first default-route counts, in Go's spellings of true", () => {
  const read = (text: string) => parseIdentifiers(text, "server").defaultRoute;
  for (const text of ["1", "t", "T", "true", "TRUE", "True"]) {
    assertEquals(read(`default-route=${text}`), true, text);
  }
  for (const text of ["", "0", "false", "yes", "tRUE", "maybe"]) {
    assertEquals(read(`default-route=${text}`), false, text);
  }
  assertEquals(read("default-route=false&default-route=true"), false);
});

Deno.test("a server lets pass what an agent's own flag refuses", () => {
  for (
    const text of [
      "zone=eu",
      "ipv4=localhost",
      "ipv4=::1",
      "ipv6=nonsense",
      "cidr=10.0.0.0",
      "cidr=10.0.0.0/33",
    ]
  ) {
    parseIdentifiers(text, "server");
    assertThrows(() => parseIdentifiers(text, "flag"), IdentifiersError);
  }
  assertEquals(parseIdentifiers("zone=eu", "server"), NO_IDENTIFIERS);
});

Deno.test("what is no URL query is refused by both", () => {
  for (const text of ["host=%zz", "host=%", "%ff=a", "host=a;ipv4=b"]) {
    for (const reader of ["server", "flag"] as const) {
      assertThrows(() => parseIdentifiers(text, reader), IdentifiersError);
    }
  }
  assertThrows(
    () => parseIdentifiers("a".repeat(IDENTIFIERS_LENGTH_MAX + 1), "server"),
    IdentifiersError,
  );
});

Deno.test("a name that looks like another one on every screen is none", () => {
  for (
    const text of [
      "gw%00",
      "%20gw",
      "gw%e2%80%8b",
      "g%c2%adw",
      "gw%0a",
      "%C2%9Bgw",
    ]
  ) {
    for (const key of ["host", "uid"]) {
      const query = `${key}=${text}&${key}=edge-1`;
      const read = parseIdentifiers(query, "server");
      assertEquals([...read.host, ...read.uid], ["edge-1"], text);
      assertThrows(
        () => parseIdentifiers(query, "flag"),
        IdentifiersError,
        "invisible characters",
      );
    }
  }
});

Deno.test("what is written is read again", () => {
  const identifiers = {
    host: ["a-b", "ü&x=1"],
    ipv4: ["1.2.3.4"],
    ipv6: ["::1"],
    cidr: ["fd00::/8"],
    uid: ["%"],
    defaultRoute: true,
  };
  const text = formatIdentifiers(identifiers);
  assertEquals(parseIdentifiers(text, "flag"), identifiers);
  assertEquals(/^[ -~]*$/.test(text), true, "metadata is printable ASCII");
});

Deno.test("a host is found in what was made of it and a port", () => {
  for (const host of ["127.0.0.1", "::1", "fe80::1%eth0", "localhost", ""]) {
    assertEquals(hostOf(hostPort(host, 80)), host);
    assertEquals(portOf(hostPort(host, 80)), 80);
    assertEquals(withoutBrackets(bracketed(host)), host);
  }
  assertEquals(hostOf("unix"), "unix");
  assertEquals(portOf("unix"), NaN);
});

Deno.test("IPv4 is written as IPv4, whatever the socket's family", () => {
  assertEquals(hostPort("::ffff:10.0.0.7", 80), "10.0.0.7:80");
  assertEquals(hostPort("::ffff:a00:7", 80), "10.0.0.7:80");
  assertEquals(hostPort("::ffff:1:2:3", 80), "[::ffff:1:2:3]:80");
});

Deno.test("names whose last label is a number are addresses to some resolvers", () => {
  for (const name of ["127.1", "0x7f.1", "2130706433", "a.0x", "DB.0X1F"]) {
    assertEquals(isIpv4Lookalike(name), true, name);
  }
  for (const name of ["db", "1.db", "0x1g", "127.0.0.1.example", "a.1b", ""]) {
    assertEquals(isIpv4Lookalike(name), false, name);
  }
});

Deno.test("case and the last dot make no other name", () => {
  assertEquals(plainName("DB.Example."), "db.example");
  assertEquals(plainName("db.example.."), "db.example.");
});

Deno.test("texts of others are shown in part, and on one line", () => {
  assertEquals(clipped("x".repeat(60)), "x".repeat(60));
  assertEquals(clipped("x".repeat(61)), `${"x".repeat(60)}…`);
  assertEquals(clipped("abc", 2), "ab…");
  assertEquals(kept("abc", 2), "ab");
  assertEquals(kept("ab", 2), "ab");
  assertEquals(quoted('a "b"\n\u001b[2J'), '"a \\"b\\"\\n\\u001b[2J"');
  assertEquals(quoted("abc", 2), '"ab…"');
});

const HIDES: readonly string[] = [
  ..."\u0000\u001b\u007f\u009b\u2028\u2029", // orders and breaks
  ..."\u061c\u200e\u200f\u202a\u202e\u2066\u2069", // directions
  ..."\u00ad\u034f\u180e\u200b\u200c\u200d\u2060\ufeff\ufe0f", // no shape
  ..."\u115f\u1160\u17b4\u3164\uffa0\u2800", // blank
  ..."\u{e0001}\u{e0041}\u{e0100}", // tags
  "\ud800",
];

Deno.test("what nobody sees is found and shown, wherever it stands", () => {
  for (const one of HIDES) {
    const code = one.codePointAt(0)!.toString(16);
    assertEquals(hasUnseen(`a${one}b`), true, code);
    assertEquals(showUnseen(`a${one}${one}`, () => "?"), "a??", code);
  }
});

Deno.test("letters of any language are seen", () => {
  const text = "größer – 東京 🚇 שלום ناقل a b";
  assertEquals(hasUnseen(text), false);
  assertEquals(showUnseen(text, () => "?"), text);
});

Deno.test("versions are compared part by part, as numbers", () => {
  for (
    const [one, other, sign] of [
      ["0.1.0", "0.1.0", 0],
      ["0.9.0", "0.10.0", -1],
      ["1.0.0", "0.99.99", 1],
      ["0.1.1", "0.1.2", -1],
      ["1.0.0-rc1", "1.0.0", 0],
    ] as const
  ) {
    assertEquals(
      Math.sign(compareVersions(one, other)),
      sign,
      `${one} ${other}`,
    );
    assertEquals(Math.sign(compareVersions(other, one)), -sign + 0);
  }
});

Deno.test("only programs of ours have a version that can be compared", () => {
  assertEquals(versionIn("tunnel/0.1.0"), "0.1.0");
  assertEquals(versionIn("tunnel/0.1.0+g1234"), "0.1.0");
  for (
    const other of ["", "konnectivity/0.30.3", "my tunnel/0.1.0", "tunnel/1"]
  ) {
    assertEquals(versionIn(other), undefined);
  }
});

Deno.test("ids have 16 digits and are below 2^63", () => {
  const ids = new ConnectionIds((bytes) => bytes.fill(0xff));
  assertEquals(ids.next(), "7fffffffffffffff");
});

Deno.test("one piece of randomness serves 64 ids", () => {
  let calls = 0;
  const ids = new ConnectionIds((bytes) => {
    calls++;
    crypto.getRandomValues(bytes);
  });
  const seen = new Set(Array.from({ length: 128 }, () => ids.next()));
  assertEquals(seen.size, 128);
  assertEquals(calls, 2);
  for (const id of seen) assertMatch(id, /^[0-7][0-9a-f]{15}$/);
});

Deno.test("what looks like a count is not made", () => {
  let calls = 0;
  const ids = new ConnectionIds((bytes) => bytes.fill(calls++));
  assertEquals(ids.next(), "0101010101010101");
});

Deno.test("a peer's id is 16 lower-case digits, and no count", () => {
  const id = "00f067aa0ba902b7";
  assertEquals(readConnectionId(id), id);
  assertNotEquals(readConnectionId("ffffffffffffffff"), undefined);
  for (
    const text of [
      undefined,
      "",
      "0000000000000000",
      "00000000ffffffff",
      "00F067AA0BA902B7",
      "00f067aa0ba902b",
      "00f067aa0ba902b7\n",
      " 00f067aa0ba902b7",
      "00f067aa0ba902b77",
    ]
  ) assertEquals(readConnectionId(text), undefined);
});

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

Deno.test("a traceparent is read and written", () => {
  const text = `00-${TRACE}-${SPAN}-01`;
  const context = readTraceparent([text])!;
  assertEquals(context, { traceId: TRACE, spanId: SPAN, flags: 1 });
  assertEquals(formatTraceparent(context), text);
});

Deno.test("of the flags those we know are passed on", () => {
  const context = readTraceparent([`00-${TRACE}-${SPAN}-ff`])!;
  assertEquals(formatTraceparent(context), `00-${TRACE}-${SPAN}-03`);
});

Deno.test("a later version may have more behind it", () => {
  for (const more of ["", "-", "-what-the-future-will-be-like"]) {
    const context = readTraceparent([`cc-${TRACE}-${SPAN}-01${more}`]);
    assertEquals(context?.spanId, SPAN);
  }
  assertEquals(readTraceparent([`cc-${TRACE}-${SPAN}-01.what`]), undefined);
});

Deno.test("what is not exactly right is no context", () => {
  const good = `00-${TRACE}-${SPAN}-01`;
  for (
    const values of [
      [],
      [""],
      [good, good],
      [`${good}-more`],
      [`${good} `],
      [` ${good}`],
      [`${good}\n`],
      [`ff-${TRACE}-${SPAN}-01`],
      [`0-${TRACE}-${SPAN}-01`],
      [`00-${TRACE.toUpperCase()}-${SPAN}-01`],
      [`00-${"0".repeat(32)}-${SPAN}-01`],
      [`00-${TRACE}-${"0".repeat(16)}-01`],
      [`00-${TRACE}-${SPAN}-1`],
      [`00-${TRACE}-${SPAN}`],
      [`00-${TRACE.slice(1)}-${SPAN}-01`],
      [`cc-${TRACE}-${SPAN}-01-${"x".repeat(300)}`],
    ]
  ) assertEquals(readTraceparent(values), undefined, values.join("|"));
});

Deno.test("words that came without a code are those of Go's net package", () => {
  const cases: Record<string, string | undefined> = {
    "dial tcp 127.0.0.1:9: connect: connection refused": "TUN503",
    "dial tcp 10.0.0.7:5432: i/o timeout": "TUN502",
    "dial tcp: lookup db on 10.0.0.1:53: no such host": "TUN505",
    "dial tcp 10.0.0.7:1: socket: too many open files": "TUN513",
    "dial sctp: unknown network sctp": "TUN101",
    "Cannot dial tcp 10.0.0.7:1: refused by the agent's rule x": "TUN603",
    "Cannot dial tcp a:1: refused, no rule of the agent allows it": "TUN603",
    "something else": undefined,
  };
  for (const [words, code] of Object.entries(cases)) {
    assertEquals(codeOfWords("endpoint", words), code, words);
  }
  assertEquals(codeOfWords("no-agent", "connection refused"), undefined);
});

Deno.test("a peer names only codes that there are", () => {
  assertEquals(codeNamed("TUN503"), "TUN503");
  assertEquals(codeNamed("TUN000"), undefined);
  assertEquals(codeNamed("constructor"), undefined);
  assertEquals(codeNamed(undefined), undefined);
});
