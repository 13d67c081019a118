import { assertEquals, assertMatch, assertNotEquals } from "@std/assert";
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
