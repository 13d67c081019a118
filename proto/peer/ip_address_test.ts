import { assert, assertEquals } from "@std/assert";
import {
  canonicalIp,
  isLoopback,
  isLoopbackHost,
  parseIpAddress,
  parseIpPrefix,
  prefixContains,
} from "./ip_address.ts";

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
