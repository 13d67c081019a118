import { assert, assertEquals } from "@std/assert";
import {
  canonicalIp,
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
