/**
 * What kube-proxy's own tests say of endpoints in its registry, by the names
 * that they have there (`roundrobin_test.go`).
 */

import { assertEquals } from "@std/assert";
import { REGISTRY_LAYOUT, REGISTRY_PREFIX } from "./etcd_registry_layout.ts";

/** Those of `texts` that are used, and how many are left out. */
function read(texts: readonly string[]) {
  const refused: string[] = [];
  const endpoints = REGISTRY_LAYOUT.readEndpoints(
    `${REGISTRY_PREFIX}endpoints/foo`,
    JSON.stringify({ id: "foo", endpoints: texts }),
    undefined,
    (problem) => refused.push(problem),
  );
  const used = endpoints.map(({ address, ports }) =>
    `${address}:${ports[0]!.port}`
  );
  return { used, refused };
}

Deno.test("TestValidateWorks", () => {
  for (const text of ["", "foobar", "foobar:-1"]) {
    assertEquals(read([text]).used, [], text);
  }
  assertEquals(read(["foobar:8080"]).used, ["foobar:8080"]);
});

Deno.test("TestFilterWorks", () => {
  const { used, refused } = read([
    "foobar:1",
    "foobar:2",
    "foobar:-1",
    "foobar:3",
    "foobar:-2",
  ]);
  assertEquals(used, ["foobar:1", "foobar:2", "foobar:3"]);
  assertEquals(refused.length, 2);
});
