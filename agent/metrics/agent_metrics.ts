/**
 * An agent's metrics: Konnectivity's with their names, labels, types and HELP
 * texts, and ours (`tunnel_agent_…`).
 *
 * @module
 */

import type { MetricRegistry, Series } from "../../platform/metrics/metrics.ts";
import { goStatusName } from "../../proto/grpc/status.ts";
import type { PacketObserver } from "../../proto/link/link.ts";
import type { DialWitness } from "../../platform/conduits/dial_reports.ts";
import type { ConduitObserver } from "../../proto/transfer/observed_conduit.ts";

const UPSTREAM = "konnectivity_network_proxy_agent_";

/** Prefix of our names. */
const AGENT_PREFIX = "tunnel_agent_";

/** Upstream's buckets, in seconds. */
const DIAL_BOUNDS = [.005, .025, .1, .5, 2.5, 10, 30];

export class AgentMetrics {
  readonly #packets;
  readonly #streamErrors;
  readonly #dialSeconds;
  readonly #dialFailures;
  readonly #serverFailures;
  readonly #openServers: Series;
  readonly #knownServers: Series;
  /** Dials of targets that are under way. */
  #dialing = 0;
  readonly #openEndpoints: Series;
  readonly #bytes;
  readonly #conduitEnds;
  readonly #stalled: Series;
  readonly #droppedDatagrams: Series;
  readonly #fallbacks: Series;
  readonly #refusedDials: Series;

  constructor(registry: MetricRegistry) {
    const gauge = (name: string, help: string) =>
      registry.series("gauge", `${UPSTREAM}${name}`, help);
    const counters = (name: string, help: string, labels: readonly string[]) =>
      registry.labelled("counter", name, help, labels);
    const ours = ownCounters(registry);
    this.#dialSeconds = registry.histogram(
      `${UPSTREAM}dial_duration_seconds`,
      "Latency of dial to the remote endpoint in seconds",
      DIAL_BOUNDS,
    );
    this.#serverFailures = counters(
      `${UPSTREAM}server_connection_failure_count`,
      "Count of failures to send to or receive from the proxy server, " +
        "labeled by the direction (from_server or to_server). " +
        "DEPRECATED, please use stream_events_error_total",
      ["direction"],
    );
    this.#dialFailures = counters(
      `${UPSTREAM}endpoint_dial_failure_total`,
      "Number of failures dialing the remote endpoint, by reason (example: timeout).",
      ["reason"],
    );
    this.#openServers = gauge(
      "open_server_connections",
      "Current number of open server connections.",
    );
    this.#knownServers = gauge(
      "known_server_count",
      "Current number of servers agent is trying to connect to.",
    );
    this.#openEndpoints = gauge(
      "open_endpoint_connections",
      "Current number of open endpoint connections.",
    );
    this.#packets = counters(
      `${UPSTREAM}stream_packets_total`,
      "Count of packets processed, by segment and packet type (example: from_client, DIAL_REQ)",
      ["segment", "packet_type"],
    );
    this.#streamErrors = counters(
      `${UPSTREAM}stream_errors_total`,
      "Count of gRPC stream errors, by segment, grpc Code, packet type. " +
        "(example: from_agent, Code.Unavailable, DIAL_RSP)",
      ["segment", "code", "packet_type"],
    );
    this.#bytes = counters(
      `${AGENT_PREFIX}bytes_total`,
      "Bytes carried for connections, by direction.",
      ["direction"],
    );
    this.#conduitEnds = counters(
      `${AGENT_PREFIX}connection_ends_total`,
      "Connections to targets that ended, by how: clean, reset or lost.",
      ["end"],
    );
    this.#stalled = ours(
      "stalled_connections_reset",
      "Packets carrier: connections reset because they made no progress.",
    );
    this.#fallbacks = ours(
      "carrier_fallbacks",
      "Links to servers of ours that had to use Konnectivity's protocol.",
    );
    this.#refusedDials = ours("refused_dials", "Dials that a rule forbade.");
    this.#droppedDatagrams = ours(
      "dropped_datagrams",
      "Datagrams dropped because they were too long or found no room.",
    );
  }

  /** A link to a server of ours speaks Konnectivity's protocol. */
  fellBack(): void {
    this.#fallbacks.add();
  }

  /** Distinct servers linked, and how many there are said to be. */
  servers(linked: number, known: number): void {
    this.#openServers.set(linked);
    this.#knownServers.set(known);
  }

  /** A link failed or was lost. */
  serverFailed(): void {
    this.#serverFailures.with("from_server").add();
  }

  /** Dials of targets that are under way, and connections that are open. */
  get load(): number {
    return this.#dialing + this.#openEndpoints.value;
  }

  /** @param loadChanged Called after {@linkcode load} has become less. */
  dialWitness(loadChanged: () => void): DialWitness {
    const fromTarget = this.#bytes.with("from_target");
    const toTarget = this.#bytes.with("to_target");
    // One for all connections: idle ones are many, and each should cost little.
    const counter: ConduitObserver = {
      received: (bytes) => fromTarget.add(bytes),
      sent: (bytes) => toTarget.add(bytes),
      ended: ({ kind }) => {
        this.#openEndpoints.add(-1);
        this.#conduitEnds.with(kind).add();
        loadChanged();
      },
    };
    return {
      began: () => this.#dialing++,
      over: () => {
        this.#dialing--;
        queueMicrotask(loadChanged);
      },
      failed: ({ reason }) => {
        if (reason === "cancelled") return;
        if (reason === "refused") this.#refusedDials.add();
        const label = reason === "timeout" ? "timeout" : "unknown";
        this.#dialFailures.with(label).add();
      },
      connected: ({ askedMs, span }, _inner, { openedMs }) => {
        const seconds = (openedMs - askedMs) / 1000;
        this.#dialSeconds.observe(seconds, span?.context.traceId);
        this.#openEndpoints.add();
        return counter;
      },
    };
  }

  /** For the links. */
  packetObserver(): PacketObserver {
    const known = new Map<string, Series>();
    const of = (segment: string, type: string) => {
      const key = segment + type;
      let series = known.get(key);
      if (series === undefined) {
        known.set(key, series = this.#packets.with(segment, type));
      }
      return series;
    };
    return {
      packetReceived: (type) => of("to_agent", type).add(),
      packetSent: (type) => of("from_agent", type).add(),
      datagramDropped: () => this.#droppedDatagrams.add(),
      conduitStalled: () => this.#stalled.add(),
      // Upstream's word for errors that came with no packet; ours all do.
      streamFailed: (code) =>
        this.#streamErrors.with("to_agent", goStatusName(code), "Unknown")
          .add(),
    };
  }
}

/** Makes counters under our own names. */
function ownCounters(registry: MetricRegistry) {
  return (name: string, help: string): Series =>
    registry.series("counter", `${AGENT_PREFIX}${name}_total`, help);
}
