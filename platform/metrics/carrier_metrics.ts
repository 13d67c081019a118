/**
 * What both ends of a link count alike: packets, under Konnectivity's names and
 * with its HELP texts, and bytes and ends of connections, under ours.
 *
 * @module
 */

import { goStatusName } from "../../proto/grpc/status.ts";
import type { PacketObserver } from "../../proto/link/link.ts";
import type { LabelledSeries, MetricRegistry, Series } from "./metrics.ts";

/** Upstream's word for errors that came with no packet; ours all do. */
const STREAM_ERROR_PACKET = "Unknown";

export class CarrierMetrics {
  /** By direction. */
  readonly bytes: LabelledSeries;
  /** By how. */
  readonly conduitEnds: LabelledSeries;
  readonly #packets: LabelledSeries;
  readonly #streamErrors: LabelledSeries;
  readonly #stalled: Series;
  readonly #droppedDatagrams: Series;

  /**
   * @param upstream Prefix of the names that are Konnectivity's.
   * @param prefix Of ours.
   */
  constructor(registry: MetricRegistry, upstream: string, prefix: string) {
    const counter = (name: string, help: string) =>
      registry.series("counter", `${prefix}${name}_total`, help);
    const counters = (name: string, help: string, labels: readonly string[]) =>
      registry.labelled("counter", `${name}_total`, help, labels);
    this.#packets = counters(
      `${upstream}stream_packets`,
      "Count of packets processed, by segment and packet type (example: from_client, DIAL_REQ)",
      ["segment", "packet_type"],
    );
    this.#streamErrors = counters(
      `${upstream}stream_errors`,
      "Count of gRPC stream errors, by segment, grpc Code, packet type. " +
        "(example: from_agent, Code.Unavailable, DIAL_RSP)",
      ["segment", "code", "packet_type"],
    );
    this.bytes = counters(
      `${prefix}bytes`,
      "Bytes carried for connections, by direction.",
      ["direction"],
    );
    this.conduitEnds = counters(
      `${prefix}connection_ends`,
      "Connections that ended, by how: clean, reset or lost.",
      ["end"],
    );
    this.#stalled = counter(
      "stalled_connections_reset",
      "Connections of the packets carrier reset because they made no progress.",
    );
    this.#droppedDatagrams = counter(
      "dropped_datagrams",
      "Datagrams dropped because they were too long or found no room.",
    );
  }

  /**
   * For what carries packets with a peer.
   *
   * @param received The segment of packets that come, such as `from_agent`.
   */
  observer(
    received: string,
    sent: string,
  ): Omit<Required<PacketObserver>, "conduitHolds"> {
    const of = (segment: string) => {
      // Looking a series up by labels for each packet would cost more than it.
      const known = new Map<string, Series>();
      const find = (type: string) => this.#packets.with(segment, type);
      return (type: string) => known.getOrInsertComputed(type, find).add();
    };
    return {
      packetReceived: of(received),
      packetSent: of(sent),
      datagramDropped: () => this.#droppedDatagrams.add(),
      // Counted as dropped; the log says why.
      datagramCut() {},
      conduitStalled: () => this.#stalled.add(),
      streamFailed: (code) =>
        this.#streamErrors
          .with(received, goStatusName(code), STREAM_ERROR_PACKET).add(),
    };
  }
}
