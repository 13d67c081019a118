/**
 * A server's metrics: what is counted by reports, or computed. Other parts count
 * in the families themselves; the names are in `metric_families.ts`.
 *
 * @module
 */

import type { MetricRegistry, Series } from "../../platform/metrics/metrics.ts";
import { CarrierMetrics } from "../../platform/metrics/carrier_metrics.ts";
import type { PacketObserver } from "../../proto/link/link.ts";
import type { ConduitEnd } from "../../proto/transfer/conduit.ts";
import type { ConduitObserver } from "../../proto/transfer/observed_conduit.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import type {
  DialFailureCause,
  DialPath,
  DialWitness,
} from "../../platform/conduits/dial_reports.ts";
import {
  ownFamilies,
  SERVER_PREFIX,
  shownGauge,
  UPSTREAM_PREFIX,
  upstreamFamilies,
} from "../metrics/metric_families.ts";
import { NodeCount, NodeMetrics } from "../metrics/node_metrics.ts";
import type { Registry } from "../routing/registry.ts";

/** Upstream's word for each way in which a dial fails. */
const DIAL_FAILURE: Readonly<Record<DialFailureCause, string>> = {
  "no-agent": "no_agent",
  // Ours: upstream has no rules.
  refused: "refused_by_policy",
  answered: "error_response",
  deadline: "backend_dial_timeout",
  cancelled: "frontend_close",
  "link-lost": "backend_close",
  "dial-closed": "backend_close",
};

/** The counters of a server. */
export class ServerMetrics {
  /** Konnectivity's families. */
  readonly upstream: ReturnType<typeof upstreamFamilies>;
  readonly ours: ReturnType<typeof ownFamilies>;
  readonly nodes: NodeMetrics;
  readonly #carrier: CarrierMetrics;
  readonly #fromAgent: Series;
  readonly #toAgent: Series;

  /** @param nodesMax Nodes with labels of their own. */
  constructor(
    private readonly registry: MetricRegistry,
    private readonly clock: Clock,
    nodesMax?: number,
  ) {
    this.nodes = new NodeMetrics(nodesMax);
    this.upstream = upstreamFamilies(registry);
    this.ours = ownFamilies(registry);
    this.#carrier = new CarrierMetrics(
      registry,
      UPSTREAM_PREFIX,
      SERVER_PREFIX,
    );
    this.#fromAgent = this.#carrier.bytes.with("from_agent");
    this.#toAgent = this.#carrier.bytes.with("to_agent");
  }

  /** Adds metrics that are computed from the agents. */
  watch(agents: Registry): void {
    this.nodes.register(this.registry, () => agents.links);
    const backends = () =>
      agents.agentCounts().map(({ strategy, agents }) =>
        [[strategy], agents] as const
      );
    this.registry.computedLabelled(
      "gauge",
      `${UPSTREAM_PREFIX}ready_backends`,
      "Number of konnectivity agent connected to the proxy server",
      ["proxy_strategy"],
      backends,
    );
    this.registry.computed(
      "gauge",
      `${UPSTREAM_PREFIX}ready_backend_connections`,
      "Number of konnectivity agent connected to the proxy server. DEPRECATED, please use ready_backends",
      () => agents.agentCounts()[0]?.agents ?? 0,
    );
    this.registry.computedLabelled(
      "gauge",
      `${SERVER_PREFIX}links`,
      "Agents' links, by carrier.",
      ["carrier"],
      () =>
        (["streams", "packets"] as const)
          .map((carrier) => [[carrier], agents.linksOver(carrier)]),
    );
    const bulkOf = (isCounted: (bulkConduits: number) => number) => () => {
      let sum = 0;
      for (const link of agents.loadedLinks()) {
        sum += isCounted(link.bulkConduits);
      }
      return sum;
    };
    shownGauge(
      this.registry,
      "bulk_connections",
      "Connections that move in bulk now.",
      bulkOf((bulkConduits) => bulkConduits),
    );
    shownGauge(
      this.registry,
      "bulk_links",
      "Links that carry bulk now; new connections avoid them.",
      bulkOf((bulkConduits) => bulkConduits > 0 ? 1 : 0),
    );
  }

  /** Connections that are open now. */
  get established(): number {
    return this.upstream.established.value;
  }

  /** Dials that are under way now. */
  get pendingDials(): number {
    return this.upstream.pendingDials.value;
  }

  /** For the dialer. */
  dialWitness(loadChanged: () => void): DialWitness {
    const counts: ConduitCounts = {
      fromAgent: this.#fromAgent,
      toAgent: this.#toAgent,
      ended: (end, conduit) => {
        this.#countEnd(end, conduit);
        loadChanged();
      },
    };
    return {
      began: () => this.upstream.pendingDials.add(),
      over: () => {
        this.upstream.pendingDials.add(-1);
        queueMicrotask(loadChanged);
      },
      failed: (_problem, dial, _facts, cause = "answered") => {
        const { path = "direct", agentId } = dial;
        const reason = DIAL_FAILURE[cause];
        this.upstream.dialFailures.with(reason).add();
        // A dial to another server's node is counted by that server.
        if (path !== "to_peer") this.nodes.of(agentId).failures++;
        if (path !== "direct") {
          this.ours.forwardedDials.with(path, reason).add();
        }
      },
      connected: (dial, _inner, { openedMs }) => {
        const { path = "direct", askedMs, agentId, span } = dial;
        const seconds = (openedMs - askedMs) / 1000;
        this.upstream.dialSeconds.observe(seconds, span?.context.traceId);
        this.upstream.established.add();
        if (path !== "direct") {
          this.ours.forwardedDials.with(path, "connected").add();
          this.ours.forwardedConnections.with(path).add();
        }
        if (path === "to_peer") {
          return new ConduitCount(counts, path, openedMs, NOBODY);
        }
        const count = this.nodes.of(agentId);
        count.connections++;
        count.open++;
        return new ConduitCount(counts, path, openedMs, count);
      },
    };
  }

  #countEnd(
    { kind }: ConduitEnd,
    { startMs, path, fromAgent, toAgent }: ConduitCount,
  ): void {
    this.ours.connectionBytes.with("from_agent").observe(fromAgent);
    this.ours.connectionBytes.with("to_agent").observe(toAgent);
    if (path !== "direct") {
      this.ours.forwardedConnections.with(path).add(-1);
      this.ours.forwardedEnds.with(path, kind).add();
    }
    this.upstream.established.add(-1);
    this.#carrier.conduitEnds.with(kind).add();
    this.upstream.lifeSeconds.observe((this.clock.now() - startMs) / 1000);
  }

  /** For everything that carries packets with callers or agents. */
  packetObserver(peer: "client" | "agent"): Required<PacketObserver> {
    return {
      ...this.#carrier.observer(`from_${peer}`, `to_${peer}`),
      // Only agents of the packets carrier have connections that hold others up.
      conduitHolds: (change) =>
        this.upstream.fullReceiveChannels.with("Connect").add(change),
    };
  }
}

/** Conduits to other servers' nodes, which count them. */
const NOBODY = new NodeCount();

/** The common counters of a server's conduits. */
interface ConduitCounts {
  readonly fromAgent: Series;
  readonly toAgent: Series;
  ended(end: ConduitEnd, conduit: ConduitCount): void;
}

/** Counts one conduit. Small, because idle conduits are many. */
class ConduitCount implements ConduitObserver {
  fromAgent = 0;
  toAgent = 0;

  constructor(
    private readonly counts: ConduitCounts,
    readonly path: DialPath,
    /** When it was open, by the clock. */
    readonly startMs: number,
    private readonly node: NodeCount,
  ) {}

  received(bytes: number): void {
    this.fromAgent += bytes;
    this.node.fromNode += bytes;
    this.counts.fromAgent.add(bytes);
  }

  sent(bytes: number): void {
    this.toAgent += bytes;
    this.node.toNode += bytes;
    this.counts.toAgent.add(bytes);
  }

  ended(end: ConduitEnd): void {
    this.node.open--;
    this.counts.ended(end, this);
  }
}
