import { assertEquals } from "@std/assert";
import {
  certifiedCaller,
  socketCaller,
} from "../../tests/support/memory/fake_caller.ts";
import { FakeLink } from "../../tests/support/memory/fake_link.ts";
import type { StrategyName } from "../options.ts";
import { DialAuthorizer } from "../policy/dial_authorizer.ts";
import { Policy } from "../policy/policy.ts";
import { fakePeers } from "../../tests/support/memory/fake_forwarder.ts";
import {
  ambiguousTarget,
  connectedNodes,
  meantNode,
  type MeantNodeFacts,
  nodeHint,
  NODES_LOOKED_AT_MAX,
} from "./meant_node.ts";
import { Registry } from "./registry.ts";

function registryOf(
  links: readonly FakeLink[],
  strategies: readonly StrategyName[] = ["default"],
): Registry {
  const clock = { now: () => 0 };
  const registry = new Registry({ strategies, clock, random: () => 0 });
  for (const link of links) registry.add(link);
  return registry;
}

/** Which node and target are meant by `n1:22`, where it is a node. */
function meant(
  facts: MeantNodeFacts,
  { host = "n1", as = "", node = "" } = {},
) {
  const dial = meantNode({
    target: { protocol: "tcp", address: `${host}:22` },
    caller: as === "" ? socketCaller() : certifiedCaller(as),
    node: node === "" ? undefined : node,
  }, facts);
  return dial && `${dial.node} ${dial.target.address}`;
}

Deno.test("a host that is a connected node's own name is that node", () => {
  const registry = registryOf([
    new FakeLink("n1", { host: ["n1"] }),
    new FakeLink("10.0.0.9", {}),
    new FakeLink("gateway", { host: ["db.internal"] }),
  ]);
  assertEquals(meant({ registry }), "id=n1 127.0.0.1:22");
  assertEquals(meant({ registry }, { host: "N1" }), "id=N1 127.0.0.1:22");
  assertEquals(meant({ registry }, { host: "n2" }), undefined);
  assertEquals(meant({ registry }, { node: "gateway" }), undefined, "named");
  assertEquals(meant({ registry }, { host: "10.0.0.9" }), undefined, "address");
  assertEquals(meant({ registry }, { host: "db.internal" }), undefined);
});

Deno.test("a host that an agent serves by strategy is that host, whatever nodes are called", () => {
  const strategies = ["destHost", "default"] as const;
  const node = new FakeLink("n1", {});
  assertEquals(
    meant({ registry: registryOf([node], strategies) }),
    "id=n1 127.0.0.1:22",
  );
  const serving = [node, new FakeLink("gateway", { host: ["n1"] })];
  assertEquals(meant({ registry: registryOf(serving, strategies) }), undefined);
});

Deno.test("a caller that may not reach the node itself dials what it said", () => {
  const frontends = [
    { commonName: "ops", nodes: ["n1"], allow: ["tcp:127.0.0.1:22"] },
    { commonName: "web", nodes: ["*"], allow: ["tcp:n1:22"] },
  ];
  const authorizer = new DialAuthorizer({
    policy: { current: new Policy({ frontends }) },
    refused: () => {},
  });
  const here = {
    registry: registryOf([new FakeLink("n1", {})]),
    authorizer,
  };
  const elsewhere = {
    registry: registryOf([]),
    authorizer,
    peers: fakePeers(["s2"], { agentsAreKnown: true }),
  };
  for (const facts of [here, elsewhere]) {
    assertEquals(meant(facts, { as: "ops" }), "id=n1 127.0.0.1:22");
    assertEquals(meant(facts, { as: "web" }), undefined);
  }
});

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
