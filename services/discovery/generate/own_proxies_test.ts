import { assertEquals } from "@std/assert";
import { ownProxies } from "./assignments.ts";

const PROXY = { host: "127.0.0.1", port: 3_128, more: 3 };

function hosts(...endpoints: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    [...ownProxies(endpoints, PROXY)].map(([name, { host }]) => [name, host]),
  );
}

Deno.test("each endpoint has a proxy of its own, as far as there are", () => {
  const all = hosts("a", "b", "c", "d");
  assertEquals(Object.values(all).sort(), [
    ...["127.0.0.1", "127.84.0.1", "127.84.0.2", "127.84.0.3"],
  ]);
  assertEquals(hosts("d", "c", "b", "a"), all);
  assertEquals(Object.keys(hosts("a", "b", "c", "d", "e", "f")).length, 6);
});

Deno.test("without more there is one for all", () => {
  const plain = { host: "127.0.0.1", port: 3_128 };
  const own = ownProxies(["a", "b"], plain);
  assertEquals([...own.values()], [plain, plain]);
});
