/**
 * What a link reports to metrics. Counters only: everything here is called on
 * the hot path.
 *
 * @module
 */

import type { StatusCode } from "../grpc/status.ts";

export interface PacketObserver {
  /**
   * A packet arrived.
   *
   * @param type Its name, such as `DATA`.
   * @param bytes Of payload; 0 for all types but DATA.
   */
  packetReceived(type: string, bytes: number): void;
  /** A packet was handed to the output; see `packetReceived`. */
  packetSent(type: string, bytes: number): void;
  /** A datagram was dropped: too long, or no room for it. */
  datagramDropped?(): void;
  /** A Go agent had cut the datagram that was just counted as dropped. */
  datagramCut?(): void;
  /** A conduit was reset because it made no progress and held up the others. */
  conduitStalled?(): void;
  /** A conduit began (1) or ceased (−1) to hold up the others of its link. */
  conduitHolds?(change: 1 | -1): void;
  /**
   * A stream of packets ended with an error.
   *
   * @param code Its gRPC status, from either end; CANCELLED when the other end
   *   reset it, UNAVAILABLE when it was lost.
   */
  streamFailed?(code: StatusCode): void;
}

/** Counts nothing. */
export const SILENT_OBSERVER: PacketObserver = {
  packetReceived() {},
  packetSent() {},
};
