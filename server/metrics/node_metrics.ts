/**
 * What a server counts for each node: whether it is linked, its traffic, and
 * its failed dials.
 *
 * An unauthenticated agent's name is only a claim, and agents come and go: the
 * first nodes with traffic have a label of their own, and all others are
 * counted together, as are names that are no node's. When no label is left, the
 * label of a node that is gone is given to another.
 *
 * @module
 */

import type { MetricRegistry, Sample } from "../../platform/metrics/metrics.ts";
import { isNodeName } from "../../proto/identity/node_name.ts";
import type { AgentLink } from "../../proto/link/link.ts";

/** Nodes with labels of their own, each of nine series; `--metrics-nodes-max`. */
export const NODES_MAX = 1_000;

/** The label of all other nodes; no node has such a name. */
export const OTHER_NODES = "(others)";

const PREFIX = "tunnel_node_";

/** Links that are looked at between two chances for others. */
const LOOK_SLICE = 64;

/** The traffic of one node. Counted on the hot path: plain numbers. */
export class NodeCount {
  /** Links that stand, as far as they were counted here. */
  links = 0;
  open = 0;
  connections = 0;
  failures = 0;
  toNode = 0;
  fromNode = 0;
}

/** Links of one node, or of all others. */
interface LinkedNode {
  links: number;
  /** The shortest; NaN: none was measured. */
  roundTripMs: number;
}

/** See the module description. */
export class NodeMetrics {
  readonly #nodes = new Map<string, NodeCount>();
  readonly #others = new NodeCount();

  constructor(private readonly nodesMax: number = NODES_MAX) {}

  /** The counts of `node`; `undefined`: the node is unknown. */
  of(node: string | undefined): NodeCount {
    const known = node === undefined ? this.#others : this.#nodes.get(node);
    if (known !== undefined) return known;
    if (this.#nodes.size >= this.nodesMax || !isNodeName(node!)) {
      return this.#others;
    }
    const count = new NodeCount();
    this.#nodes.set(node!, count);
    return count;
  }

  /** A node that is linked has a label, if there is one left. */
  linked({ peer: { agentId } }: AgentLink): void {
    if (this.#nodes.size >= this.nodesMax && !this.#nodes.has(agentId)) {
      this.#forgetOne();
    }
    const count = this.of(agentId);
    if (count !== this.#others) count.links++;
  }

  unlinked({ peer }: AgentLink): void {
    const count = this.#nodes.get(peer.agentId);
    if (count !== undefined && count.links > 0) count.links--;
  }

  /** The first that is gone: where nodes come and go, all names change. */
  #forgetOne(): void {
    for (const [node, { links, open }] of this.#nodes) {
      if (links === 0 && open === 0) return void this.#nodes.delete(node);
    }
  }

  /** @param links All that there are now. */
  register(registry: MetricRegistry, links: () => Iterable<AgentLink>): void {
    const show = (
      type: "gauge" | "counter",
      name: string,
      help: string,
      values: () => Iterable<Sample | undefined>,
    ) => registry.computedLabelled(type, PREFIX + name, help, ["node"], values);
    show(
      "gauge",
      "online",
      "1 while the node is linked to this server; of all others, how many are.",
      () => this.#linkedSamples(links(), (node) => node === undefined ? 0 : 1),
    );
    show(
      "gauge",
      "links",
      "Links of the node.",
      () => this.#linkedSamples(links(), (node) => node?.links ?? 0),
    );
    show(
      "gauge",
      "round_trip_seconds",
      "Newest round trip to the node, over its quickest link; of no others.",
      () =>
        this.#linkedSamples(
          links(),
          (node) => (node?.roundTripMs ?? NaN) / 1_000,
          "alone",
        ),
    );
    show(
      "gauge",
      "connections",
      "Connections that the node carries now.",
      () => this.#samples(({ open }) => open),
    );
    show(
      "counter",
      "connections_total",
      "Connections that the node has made.",
      () => this.#samples(({ connections }) => connections),
    );
    show(
      "counter",
      "dial_failures_total",
      "Dials that were asked of the node, or were for it, and failed.",
      () => this.#samples(({ failures }) => failures),
    );
    show(
      "counter",
      "sent_bytes_total",
      "Bytes of connections that went to the node.",
      () => this.#samples(({ toNode }) => toNode),
    );
    show(
      "counter",
      "received_bytes_total",
      "Bytes of connections that came from the node.",
      () => this.#samples(({ fromNode }) => fromNode),
    );
  }

  *#samples(value: (count: NodeCount) => number): Iterable<Sample | undefined> {
    for (const [node, count] of this.#nodes) {
      yield [[node], value(count)];
    }
    if (this.#others.connections > 0 || this.#others.failures > 0) {
      yield [[OTHER_NODES], value(this.#others)];
    }
  }

  *#linkedSamples(
    links: Iterable<AgentLink>,
    value: (node?: LinkedNode) => number,
    whose: "alone" | "and others" = "and others",
  ): Iterable<Sample | undefined> {
    const linked = new Map<string, LinkedNode>();
    let looked = 0;
    for (const { peer: { agentId }, roundTripMs = NaN } of links) {
      if (++looked % LOOK_SLICE === 0) yield undefined;
      const known = linked.get(agentId);
      if (known === undefined) linked.set(agentId, { links: 1, roundTripMs });
      else {
        known.links++;
        // A NaN is the shorter of none.
        const isShorter = !isNaN(roundTripMs) &&
          !(known.roundTripMs <= roundTripMs);
        if (isShorter) known.roundTripMs = roundTripMs;
      }
    }
    for (const node of this.#nodes.keys()) {
      const number = value(linked.get(node));
      linked.delete(node);
      yield isNaN(number) ? undefined : [[node], number];
    }
    if (whose === "alone") return;
    let sum = 0;
    for (const node of linked.values()) sum += value(node);
    if (linked.size > 0 && !isNaN(sum)) yield [[OTHER_NODES], sum];
  }
}
