import { assertEquals } from "@std/assert";
import { FakeLink } from "../../tests/support/memory/fake_link.ts";
import {
  ambiguousTarget,
  connectedNodes,
  nodeHint,
  NODES_LOOKED_AT_MAX,
} from "./meant_node.ts";

Deno.test("nodes are called as callers name them, each once", () => {
  const links = [
    new FakeLink("b", { host: ["node2"] }),
    new FakeLink("a", { host: ["node1"] }),
    new FakeLink("a", { host: ["node1"] }),
    new FakeLink("nameless"),
    new FakeLink("evil\nname"),
    new FakeLink("x".repeat(5_000), { host: ["y".repeat(5_000)] }),
  ];
  assertEquals(connectedNodes(links), ["id=nameless", "node1", "node2"]);
});

Deno.test("a big server looks at some of its links only", () => {
  let looked = 0;
  function* links() {
    for (;;) yield (looked++, new FakeLink("a", { host: ["a"] }));
  }
  assertEquals(connectedNodes(links()), ["a"]);
  assertEquals(looked, NODES_LOOKED_AT_MAX + 1);
});

Deno.test("a caller that names no connected node receives the names of those that are", () => {
  const nodes = ["node1", "node2", "shop-a", "shop-b", "shop-c", "shop-d"];
  assertEquals(nodeHint("nod1", nodes), "did you mean node1?");
  assertEquals(
    nodeHint("warehouse", nodes),
    "connected: node1, node2, shop-a, shop-b, shop-c and 1 more",
  );
  assertEquals(nodeHint("warehouse", []), "");
});

Deno.test("a loopback of several nodes is refused with their names", () => {
  assertEquals(
    ambiguousTarget("127.0.0.1:80", ["node1", "node2"]),
    "Cannot dial 127.0.0.1:80: it is another machine on each of 2 nodes; say " +
      "which with --node (connected: node1, node2)",
  );
});
