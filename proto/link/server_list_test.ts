import { assert, assertEquals } from "@std/assert";
import {
  formatServers,
  parseServers,
  SERVER_LIST_MAX,
} from "./capabilities.ts";

const SERVERS = [
  { serverId: "s1", instanceId: "aaaaaaaa", address: "[fd00::7]:8091" },
  { serverId: "a, b c\n", instanceId: "", address: "b.example:1" },
];

Deno.test("servers are read as they were written, whatever their ids", () => {
  const text = formatServers(SERVERS);
  assert(/^[\x20-\x7e]+$/.test(text), text);
  assertEquals(parseServers(text), SERVERS);
  assertEquals(parseServers(formatServers([])), []);
});

Deno.test("a list is never longer than a field may be", () => {
  const many = Array.from({ length: 1_000 }, () => SERVERS[0]!);
  const text = formatServers(many);
  assert(text.length <= SERVER_LIST_MAX);
  assert(parseServers(text).length > 50);
});

Deno.test("what is no list of servers is none", () => {
  for (
    const text of [undefined, "", ",", "a", "a b", "a b c d", "%zz b c", "  "]
  ) assertEquals(parseServers(text), [], text);
  assertEquals(parseServers("x".repeat(SERVER_LIST_MAX + 1)), []);
});
