import { assert, assertEquals } from "@std/assert";
import { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { FakeLink } from "../../tests/support/memory/fake_link.ts";
import { NodeMetrics, OTHER_NODES } from "./node_metrics.ts";

function scene(nodesMax?: number) {
  const registry = new MetricRegistry();
  const links = new Set<FakeLink>();
  const nodes = new NodeMetrics(nodesMax);
  nodes.register(registry, () => links);
  const link = (agentId: string, roundTripMs?: number) => {
    const one = new FakeLink(agentId);
    one.roundTripMs = roundTripMs;
    links.add(one);
    nodes.linked(one);
    return one;
  };
  const lines = () =>
    registry.expose().split("\n").filter((line) => /^[^#]/.test(line));
  return { registry, links, nodes, link, lines };
}

Deno.test("a node that is linked and carries something is counted by its name", () => {
  const { nodes, link, links, lines } = scene();
  const second = link("edge-7", 30);
  link("edge-7", 20);
  const count = nodes.of("edge-7");
  count.connections = 3;
  count.open = 1;
  count.toNode = 100;
  count.fromNode = 2_000;
  nodes.of("edge-7").failures++;
  assertEquals(lines(), [
    'tunnel_node_online{node="edge-7"} 1',
    'tunnel_node_links{node="edge-7"} 2',
    'tunnel_node_round_trip_seconds{node="edge-7"} 0.02',
    'tunnel_node_connections{node="edge-7"} 1',
    'tunnel_node_connections_total{node="edge-7"} 3',
    'tunnel_node_dial_failures_total{node="edge-7"} 1',
    'tunnel_node_sent_bytes_total{node="edge-7"} 100',
    'tunnel_node_received_bytes_total{node="edge-7"} 2000',
  ]);
  links.clear();
  assertEquals(lines()[0], 'tunnel_node_online{node="edge-7"} 0');
  assert(!lines().some((line) => line.includes("round_trip")));
  links.add(second);
  assertEquals(lines()[0], 'tunnel_node_online{node="edge-7"} 1');
});

Deno.test("nodes beyond the limit, and what is no node's name, are counted together", () => {
  const { nodes, link, lines } = scene(1);
  const hostile = 'x"} 1\nfake 2';
  for (const name of ["a", "b", "c", hostile]) link(name, 5);
  for (const name of ["b", hostile, undefined]) nodes.of(name).connections++;
  const of = (name: string) =>
    lines().filter((line) => line.startsWith(`tunnel_node_${name}{`));
  assertEquals(of("online"), [
    'tunnel_node_online{node="a"} 1',
    `tunnel_node_online{node="${OTHER_NODES}"} 3`,
  ]);
  assertEquals(of("connections_total"), [
    'tunnel_node_connections_total{node="a"} 0',
    `tunnel_node_connections_total{node="${OTHER_NODES}"} 3`,
  ]);
  assertEquals(of("round_trip_seconds").length, 1);
  assertEquals(nodes.of("b"), nodes.of("c"));
});

Deno.test("the label of a node that is gone is another's when there is none left", () => {
  const { nodes, links, link, lines } = scene(2);
  const gone = link("a");
  const busy = link("b");
  nodes.of("b").open++;
  for (const one of [gone, busy]) {
    links.delete(one);
    nodes.unlinked(one);
  }
  const names = () =>
    lines().filter((line) => line.startsWith("tunnel_node_connections{"));
  const series = (name: string) => `tunnel_node_connections{node="${name}"}`;
  assertEquals(names(), [`${series("a")} 0`, `${series("b")} 1`]);
  link("c");
  assertEquals(names(), [`${series("b")} 1`, `${series("c")} 0`]);
  link("d");
  assertEquals(names(), [`${series("b")} 1`, `${series("c")} 0`]);
});

Deno.test("a scrape of 5,000 nodes is made in small pieces", () => {
  const { registry, link, lines } = scene();
  for (let node = 0; node < 5_000; node++) link(`node-${node}`, 1);
  const lengths = Array.from(registry.pieces(), ({ length }) => length);
  assert(lengths.length > 8_000, `${lengths.length} pieces`);
  assert(Math.max(...lengths) < 1_000, `${Math.max(...lengths)} characters`);
  assertEquals(lines().length, 3 * 1_001 - 1 + 5 * 1_000);
});
