import {
  type DialFailureCause,
  DialReports,
} from "../../platform/conduits/dial_reports.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import { assert, assertEquals } from "@std/assert";
import {
  familiesIn,
  undocumented,
} from "../../tests/support/watch/metric_families.ts";
import { FakeLink } from "../../tests/support/memory/fake_link.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { StatusCode } from "../../proto/grpc/status.ts";
import { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { watchBudget } from "../../platform/metrics/process_metrics.ts";
import { ReceiveBudget } from "../../proto/streams/receive_budget.ts";
import { UPSTREAM_PREFIX } from "../metrics/metric_families.ts";
import { Registry } from "../routing/registry.ts";
import { ServerMetrics } from "./server_metrics.ts";

/**
 * Konnectivity 0.36's families that we have: type, labels, HELP. Those that we
 * do not have, and why, are in docs/reference/metrics.md.
 */
const UPSTREAM: Readonly<Record<string, readonly [string, string, string]>> = {
  dial_duration_seconds: [
    "histogram",
    "le",
    "Latency of dial to the remote endpoint in seconds",
  ],
  connection_duration_seconds: [
    "histogram",
    "le",
    "Duration of established end-to-end connections in seconds",
  ],
  grpc_connections: [
    "gauge",
    "service_method",
    "Number of current grpc connections, partitioned by service method.",
  ],
  http_connections: ["gauge", "", "Number of current HTTP CONNECT connections"],
  ready_backend_connections: [
    "gauge",
    "",
    "Number of konnectivity agent connected to the proxy server. " +
    "DEPRECATED, please use ready_backends",
  ],
  ready_backends: [
    "gauge",
    "proxy_strategy",
    "Number of konnectivity agent connected to the proxy server",
  ],
  pending_backend_dials: [
    "gauge",
    "",
    "Current number of pending backend dial requests",
  ],
  established_connections: [
    "gauge",
    "",
    "Current number of established end-to-end connections (post-dial).",
  ],
  full_receive_channels: [
    "gauge",
    "service_method",
    "Number of current connections blocked by a full receive channel, " +
    "partitioned by service method.",
  ],
  dial_failure_count: [
    "counter",
    "reason",
    "Number of dial failures observed. Multiple failures can occur for a " +
    "single dial request.",
  ],
  stream_packets_total: [
    "counter",
    "segment,packet_type",
    "Count of packets processed, by segment and packet type (example: " +
    "from_client, DIAL_REQ)",
  ],
  stream_errors_total: [
    "counter",
    "segment,code,packet_type",
    "Count of gRPC stream errors, by segment, grpc Code, packet type. " +
    "(example: from_agent, Code.Unavailable, DIAL_RSP)",
  ],
};

/** Metrics, and everything that can be counted counted once. */
function used() {
  const registry = new MetricRegistry();
  const timers = new FakeTimers();
  const metrics = new ServerMetrics(registry, timers);
  const agents = new Registry({
    strategies: ["destHost", "default"],
    clock: timers,
    random: () => 0,
  });
  const link = new FakeLink("a");
  agents.add(link);
  agents.pick({ protocol: "tcp", address: "x:1" });
  link.bulkConduits = link.load = 3;
  agents.add(new FakeLink("b"));
  metrics.watch(agents);
  watchBudget(registry, "tunnel_server_", new ReceiveBudget());
  const witness = metrics.dialWitness(() => {});
  const reports = new DialReports(undefined, witness);
  const id = "00000001000000a1";
  const dial = { id, facts: {}, askedMs: timers.now(), kill() {} };
  reports.began(dial);
  reports.connected(MemoryConduit.pair()[0], dial, timers.now() + 20);
  const fails = (cause: DialFailureCause) =>
    reports.failed(new DialError("endpoint", "no"), dial, cause);
  fails("deadline");
  const observer = metrics.packetObserver("agent");
  observer.packetReceived("DATA", 1);
  observer.packetSent("DATA", 1);
  observer.conduitHolds(1);
  observer.streamFailed(StatusCode.UNAVAILABLE);
  metrics.upstream.grpcConnections.with("Proxy").add();
  metrics.upstream.httpConnections.add();
  return { registry, metrics, fails };
}

Deno.test("upstream's families have its names, types, labels and HELP", () => {
  const seen = familiesIn(used().registry.expose(), UPSTREAM_PREFIX);
  assertEquals(seen, UPSTREAM);
});

Deno.test("bulk is counted by connection and by link", () => {
  const lines = used().registry.expose().split("\n");
  assert(lines.includes("tunnel_server_bulk_connections 3"));
  assert(lines.includes("tunnel_server_bulk_links 1"));
  assert(lines.includes("tunnel_server_waiting_bytes 0"));
});

Deno.test("every family is documented", () => {
  assertEquals(undocumented(used().registry.expose()), []);
});

Deno.test("a dial's failure has upstream's reason", () => {
  const { registry, fails } = used();
  for (const cause of ["answered", "no-agent", "cancelled"] as const) {
    fails(cause);
  }
  fails("link-lost");
  fails("dial-closed");
  const lines = registry.expose().split("\n")
    .filter((line) => line.includes("dial_failure_count{"))
    .map((line) => line.slice(line.indexOf("{")));
  assertEquals(lines, [
    '{reason="backend_dial_timeout"} 1',
    '{reason="error_response"} 1',
    '{reason="no_agent"} 1',
    '{reason="frontend_close"} 1',
    '{reason="backend_close"} 2',
  ]);
});

Deno.test("codes of failed streams are Go's", () => {
  const { registry, metrics } = used();
  const { streamFailed } = metrics.packetObserver("client");
  streamFailed(StatusCode.CANCELLED);
  streamFailed(StatusCode.INVALID_ARGUMENT);
  const codes = [...registry.expose().matchAll(/segment="(\w+)",code="(\w+)"/g)]
    .map(([, segment, code]) => `${segment} ${code}`);
  assertEquals(codes, [
    "from_agent Unavailable",
    "from_client Canceled",
    "from_client InvalidArgument",
  ]);
});
