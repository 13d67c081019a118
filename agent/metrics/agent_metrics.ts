/**
 * An agent's metrics: Konnectivity's with their names, labels, types and HELP
 * texts, and ours (`tunnel_agent_…`).
 *
 * @module
 */

import type { MetricRegistry, Series } from "../../platform/metrics/metrics.ts";
import { CarrierMetrics } from "../../platform/metrics/carrier_metrics.ts";
import type { PacketObserver } from "../../proto/link/link.ts";
import type { DialWitness } from "../../platform/conduits/dial_reports.ts";
import type { ConduitObserver } from "../../proto/transfer/observed_conduit.ts";

const UPSTREAM = "konnectivity_network_proxy_agent_";

/** Prefix of our names. */
const AGENT_PREFIX = "tunnel_agent_";

/** Upstream's buckets, in seconds. */
const DIAL_BOUNDS = [.005, .025, .1, .5, 2.5, 10, 30];

export class AgentMetrics {
  readonly #carrier: CarrierMetrics;
  readonly #dialSeconds;
  readonly #dialFailures;
  readonly #serverFailures;
  readonly #openServers: Series;
  readonly #knownServers: Series;
  /** Dials of targets that are under way. */
  #dialing = 0;
  readonly #openEndpoints: Series;
  readonly #fallbacks: Series;
  readonly #refusedDials: Series;

  constructor(registry: MetricRegistry) {
    const gauge = (name: string, help: string) =>
      registry.series("gauge", `${UPSTREAM}${name}`, help);
    const counters = (name: string, help: string, labels: readonly string[]) =>
      registry.labelled("counter", name, help, labels);
    const ours = (name: string, help: string) =>
      registry.series("counter", `${AGENT_PREFIX}${name}_total`, help);
    this.#carrier = new CarrierMetrics(registry, UPSTREAM, AGENT_PREFIX);
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
    this.#fallbacks = ours(
      "carrier_fallbacks",
      "Links to servers of ours that had to use Konnectivity's protocol.",
    );
    this.#refusedDials = ours("refused_dials", "Dials that a rule forbade.");
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
    const fromTarget = this.#carrier.bytes.with("from_target");
    const toTarget = this.#carrier.bytes.with("to_target");
    // One for all connections: idle ones are many, and each should cost little.
    const counter: ConduitObserver = {
      received: (bytes) => fromTarget.add(bytes),
      sent: (bytes) => toTarget.add(bytes),
      ended: ({ kind }) => {
        this.#openEndpoints.add(-1);
        this.#carrier.conduitEnds.with(kind).add();
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
    return this.#carrier.observer("to_agent", "from_agent");
  }
}
