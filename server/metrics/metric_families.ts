/**
 * The names of what a server counts: Konnectivity's, with exactly its labels,
 * types and HELP texts (dashboards and its own tests compare them), and ours.
 *
 * @module
 */

import type { MetricRegistry } from "../../platform/metrics/metrics.ts";
import type { LeaseObserver } from "../../neighbours/kubernetes/server_lease.ts";

/** Prefix of the names that are Konnectivity's. */
export const UPSTREAM_PREFIX = "konnectivity_network_proxy_server_";

/** Prefix of ours. */
export const SERVER_PREFIX = "tunnel_server_";

/** Upstream's buckets for dials and writes, in seconds. */
const LATENCY_BOUNDS = [1e-6, 1e-5, 1e-4, .005, .025, .1, .5, 2.5, 12.5];

/** Upstream's buckets for the life of a connection, in seconds. */
// deno-fmt-ignore: one line is enough for a list of numbers.
const LIFE_BOUNDS = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 14_400, 43_200, 86_400];

/** Buckets from a health check to an image. */
// deno-fmt-ignore: one line is enough for a list of numbers.
const BYTES_BOUNDS = [0, 256, 4_096, 65_536, 1_048_576, 16_777_216, 268_435_456, 4_294_967_296];

/** Registers Konnectivity's families. */
export const upstreamFamilies: (
  registry: MetricRegistry,
) => ReturnType<typeof registerUpstream> = registerUpstream;

/** Registers ours. */
export const ownFamilies: (
  registry: MetricRegistry,
) => ReturnType<typeof registerOwn> = registerOwn;

function registerUpstream(registry: MetricRegistry) {
  const gauge = (name: string, help: string) =>
    registry.series("gauge", `${UPSTREAM_PREFIX}${name}`, help);
  const seconds = (name: string, help: string, bounds: readonly number[]) =>
    registry.histogram(`${UPSTREAM_PREFIX}${name}_seconds`, help, bounds);
  return {
    dialSeconds: seconds(
      "dial_duration",
      "Latency of dial to the remote endpoint in seconds",
      LATENCY_BOUNDS,
    ),
    lifeSeconds: seconds(
      "connection_duration",
      "Duration of established end-to-end connections in seconds",
      LIFE_BOUNDS,
    ),
    grpcConnections: registry.labelled(
      "gauge",
      `${UPSTREAM_PREFIX}grpc_connections`,
      "Number of current grpc connections, partitioned by service method.",
      ["service_method"],
    ),
    httpConnections: gauge(
      "http_connections",
      "Number of current HTTP CONNECT connections",
    ),
    pendingDials: gauge(
      "pending_backend_dials",
      "Current number of pending backend dial requests",
    ),
    established: gauge(
      "established_connections",
      "Current number of established end-to-end connections (post-dial).",
    ),
    dialFailures: registry.labelled(
      "counter",
      `${UPSTREAM_PREFIX}dial_failure_count`,
      "Number of dial failures observed. Multiple failures can occur for a single dial request.",
      ["reason"],
    ),
    fullReceiveChannels: registry.labelled(
      "gauge",
      `${UPSTREAM_PREFIX}full_receive_channels`,
      "Number of current connections blocked by a full receive channel, partitioned by service method.",
      ["service_method"],
    ),
  };
}

function registerOwn(registry: MetricRegistry) {
  const counter = (name: string, help: string) =>
    registry.series("counter", `${SERVER_PREFIX}${name}_total`, help);
  return {
    connectionBytes: registry.labelledHistogram(
      `${SERVER_PREFIX}connection_bytes`,
      "Bytes that a connection carried until it ended, by direction.",
      "direction",
      BYTES_BOUNDS,
    ),
    refusedAgents: counter(
      "refused_agents",
      "Peers on the agent port that did not become agents.",
    ),
    refusedCallers: counter(
      "refused_callers",
      "Callers turned away before they could ask for a connection.",
    ),
    nodeConnections: registry.series(
      "gauge",
      `${SERVER_PREFIX}node_connections`,
      "Connections from nodes to other nodes, through the agent port.",
    ),
    forwardedDials: registry.labelled(
      "counter",
      `${SERVER_PREFIX}forwarded_dials_total`,
      "Dials forwarded to or from other servers, by what came of them: " +
        "connected, or a reason as of dial_failure_count.",
      ["direction", "result"],
    ),
    forwardedConnections: registry.labelled(
      "gauge",
      `${SERVER_PREFIX}forwarded_connections`,
      "Connections that go through another server now.",
      ["direction"],
    ),
    forwardedEnds: registry.labelled(
      "counter",
      `${SERVER_PREFIX}forwarded_connection_ends_total`,
      "Connections through another server that ended, by how: clean, reset " +
        "or lost.",
      ["direction", "end"],
    ),
  };
}

/** Shows a gauge of ours that is computed when the metrics are read. */
export function shownGauge(
  registry: MetricRegistry,
  name: string,
  help: string,
  value: () => number,
): void {
  registry.computed("gauge", SERVER_PREFIX + name, help, value);
}

/**
 * Counts something of ours that only one part knows of.
 *
 * @param name Between our prefix and `_total`.
 * @param labels Names of its labels.
 */
export function counted(
  registry: MetricRegistry,
  name: string,
  help: string,
  ...labels: readonly string[]
): (...values: readonly string[]) => void {
  const full = `${SERVER_PREFIX}${name}_total`;
  if (labels.length === 0) {
    const series = registry.series("counter", full, help);
    return () => series.add();
  }
  const family = registry.labelled("counter", full, help, labels);
  return (...values) => family.with(...values).add();
}

// A server's counts of its work with an API server: Konnectivity's families of
// leases.

/** Upstream's, which are its library's own, in seconds. */
const REQUEST_BOUNDS = [.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10];

/** Everything about leases but the log. Help texts are upstream's, letter by letter. */
export function countLeases(
  registry: MetricRegistry,
): Omit<LeaseObserver, "warn"> {
  const requests = (kind: "list" | "delete", help: string) => {
    const total = registry.labelled(
      "counter",
      `${UPSTREAM_PREFIX}lease_${kind}_total`,
      help,
      ["http_status_code", "reason"],
    );
    const what = kind === "list" ? "list" : "deletion";
    const seconds = registry.labelledHistogram(
      `${UPSTREAM_PREFIX}lease_${kind}_latency_seconds`,
      `Latency of lease ${what} calls by the garbage collection controller in seconds.`,
      "http_status_code",
      REQUEST_BOUNDS,
    );
    return (code: number, reason: string, durationMs: number) => {
      total.with(`${code}`, reason).add();
      seconds.with(`${code}`).observe(durationMs / 1000);
    };
  };
  const culled = registry.series(
    "counter",
    `${UPSTREAM_PREFIX}culled_leases_count`,
    "Count of expired leases that the lease garbage collection controller has culled.",
  );
  return {
    listed: requests(
      "list",
      "Count of lease deletion calls by the garbage collection controller. " +
        "Labeled by HTTP status code and reason.",
    ),
    deleted: requests(
      "delete",
      "Count of lease delection calls by the garbage collection controller. " +
        "Labeled by HTTP status code and reason.",
    ),
    culled: () => culled.add(),
    taken: counted(
      registry,
      "lease_taken",
      "Renewals that found this server's lease renewed by another process with " +
        "its id.",
    ),
  };
}
