import { assert, assertEquals } from "@std/assert";
import { COMPARISONS_MAX, editDistance, nearest } from "./nearest.ts";
import { patience } from "../../tests/support/watch/patience.ts";

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

Deno.test("nearest() does not compare what is far longer than any candidate", () => {
  const names = Array.from({ length: 500 }, (_, at) => `${at}`.padStart(63));
  const startMs = performance.now();
  assertEquals(nearest("x".repeat(60_000), names), undefined);
  // Letter by letter it is a minute.
  assert(performance.now() - startMs < patience(1_000));
});

Deno.test("nearest() compares so many letters, and no more", () => {
  const names = Array.from({ length: 5_000 }, (_, at) => `${at}`.padStart(250));
  const seen = "x".repeat(250);
  const most = Math.floor(COMPARISONS_MAX / 250 ** 2);
  names[most - 1] = `${"x".repeat(249)}y`;
  assertEquals(nearest(seen, names), names[most - 1]);
  names.splice(0, 0, `${0}`.padStart(250));
  assertEquals(nearest(seen, names), undefined);
  const short = Array.from({ length: 5_000 }, (_, at) => `node-${10_000 + at}`);
  assertEquals(nearest("node-14999x", short), "node-14999");
});

Deno.test("editDistance() counts insertions, deletions, substitutions, swaps", () => {
  assertEquals(editDistance("kitten", "sitting"), 3);
  assertEquals(editDistance("", "abc"), 3);
  assertEquals(editDistance("abc", ""), 3);
  assertEquals(editDistance("same", "same"), 0);
  assertEquals(editDistance("hlep", "help"), 1);
  assertEquals(editDistance("ab", "ba"), 1);
});
