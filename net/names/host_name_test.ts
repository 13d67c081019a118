import { assertEquals } from "@std/assert";
import { domainOf, type HostKind, readHost } from "./host_name.ts";

Deno.test("hosts are addresses, names or nothing", () => {
  const kinds: readonly (readonly [string, ReturnType<typeof readHost>])[] = [
    ["10.0.0.1", "address"],
    ["::1", "address"],
    ["fe80::1%eth0", "zoned"],
    ["fe80::1%", "invalid"],
    ["a:b", "invalid"],
    ["DB.Example", { name: "db.example", isAbsolute: false }],
    ["db.example.", { name: "db.example", isAbsolute: true }],
    ["_sip._tcp.db", { name: "_sip._tcp.db", isAbsolute: false }],
    ["bücher.example", { name: "xn--bcher-kva.example", isAbsolute: false }],
    ["1.example", { name: "1.example", isAbsolute: false }],
    ["", "invalid"],
    [".", "invalid"],
    ["a..b", "invalid"],
    ["-a.b", "invalid"],
    ["a b", "invalid"],
    ["a\0b", "invalid"],
    ...["\u200b", "\u00ad", "\u202e", "\ufe0f", "\u180b", "\u034f", "\u{e0001}"]
      .map((unseen): [string, HostKind] => [`loc${unseen}alhost`, "invalid"]),
    [`${"a".repeat(64)}.b`, "invalid"],
    [`${"a.".repeat(130)}b`, "invalid"],
    ["x".repeat(100_000), "invalid"],
  ];
  for (const [host, kind] of kinds) assertEquals(readHost(host), kind, host);
});

Deno.test("what the C library takes for an address in disguise is no name", () => {
  // Rules about 127.0.0.1 would not see these.
  for (
    const host of [
      "127.1",
      "2130706433",
      "0x7f000001",
      "0x7f.1",
      "0177.0.0.1",
      "１２７.0.0.1",
      "127.0.0.1.",
    ]
  ) assertEquals(readHost(host), "invalid", host);
});

Deno.test("the last two labels are limited together", () => {
  assertEquals(domainOf("a.b.example.org"), "example.org");
  assertEquals(domainOf("db"), "db");
  assertEquals(domainOf("printer.local"), "local");
});
