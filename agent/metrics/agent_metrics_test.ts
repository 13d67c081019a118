import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import { DialReports } from "../../platform/conduits/dial_reports.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import { assertEquals } from "@std/assert";
import { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { ReceiveBudget } from "../../proto/streams/receive_budget.ts";
import { StatusCode } from "../../proto/grpc/status.ts";
import {
  familiesIn,
  undocumented,
} from "../../tests/support/watch/metric_families.ts";
import { watchBudget } from "../../platform/metrics/process_metrics.ts";
import { AgentMetrics } from "./agent_metrics.ts";

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
  server_connection_failure_count: [
    "counter",
    "direction",
    "Count of failures to send to or receive from the proxy server, " +
    "labeled by the direction (from_server or to_server). DEPRECATED, " +
    "please use stream_events_error_total",
  ],
  endpoint_dial_failure_total: [
    "counter",
    "reason",
    "Number of failures dialing the remote endpoint, by reason (example: " +
    "timeout).",
  ],
  open_server_connections: [
    "gauge",
    "",
    "Current number of open server connections.",
  ],
  known_server_count: [
    "gauge",
    "",
    "Current number of servers agent is trying to connect to.",
  ],
  open_endpoint_connections: [
    "gauge",
    "",
    "Current number of open endpoint connections.",
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

Deno.test("upstream's families have its names, types, labels and HELP, documented", () => {
  const registry = new MetricRegistry();
  const metrics = new AgentMetrics(registry);
  watchBudget(registry, "tunnel_agent_", new ReceiveBudget());
  metrics.servers(1, 1);
  metrics.serverFailed();
  const reports = new DialReports(undefined, metrics.dialWitness(() => {}));
  const id = "00000001000000a1";
  const dial = { id, facts: {}, askedMs: 0, kill() {} };
  reports.began(dial);
  reports.failed(new DialError("timeout", "no answer"), dial);
  reports.connected(MemoryConduit.pair()[0], dial, 20);
  const link = metrics.packetObserver();
  link.packetReceived("DATA", 1);
  link.streamFailed?.(StatusCode.UNAVAILABLE);
  const text = registry.expose();
  assertEquals(undocumented(text), []);
  assertEquals(familiesIn(text, "konnectivity_network_proxy_agent_"), UPSTREAM);
  assertEquals(
    text.includes(
      '{segment="to_agent",code="Unavailable",packet_type="Unknown"}',
    ),
    true,
  );
});

Deno.test("what loads an agent are dials under way and connections, one after the other", async () => {
  const metrics = new AgentMetrics(new MetricRegistry());
  const loads: number[] = [];
  const reports = new DialReports(
    undefined,
    metrics.dialWitness(() => loads.push(metrics.load)),
  );
  const id = "00000001000000a1";
  const dials = [1, 2].map(() => ({ id, facts: {}, askedMs: 0, kill() {} }));
  for (const dial of dials) reports.began(dial);
  assertEquals(metrics.load, 2);
  for (const dial of dials) reports.over(dial);
  reports.failed(new DialError("endpoint", "refused"), dials[0]!);
  const conduit = reports.connected(MemoryConduit.pair()[0], dials[1]!, 20);
  await settled();
  // A drain must not take the moment between a dial and its connection for rest.
  assertEquals(loads, [1, 1]);
  new ConduitProbe(conduit);
  conduit.reset("enough");
  await settled();
  assertEquals(loads, [1, 1, 0]);
});
