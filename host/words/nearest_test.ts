import { assertEquals } from "@std/assert";
import { editDistance, nearest } from "./nearest.ts";

Deno.test("nearest() finds the name a typing mistake meant", () => {
  const names = ["server-port", "server-cert", "agent-port"];
  assertEquals(nearest("sever-port", names), "server-port");
  assertEquals(nearest("agentport", names), "agent-port");
  assertEquals(nearest("Server-Cert", names), "server-cert");
});

Deno.test("nearest() says nothing rather than something far-fetched", () => {
  assertEquals(nearest("frobnicate", ["mode", "uds-name"]), undefined);
  assertEquals(nearest("x", []), undefined);
});

Deno.test("editDistance() counts insertions, deletions, substitutions, swaps", () => {
  assertEquals(editDistance("kitten", "sitting"), 3);
  assertEquals(editDistance("", "abc"), 3);
  assertEquals(editDistance("abc", ""), 3);
  assertEquals(editDistance("same", "same"), 0);
  assertEquals(editDistance("hlep", "help"), 1);
  assertEquals(editDistance("ab", "ba"), 1);
});
