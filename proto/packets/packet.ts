/**
 * The tunnel's packets as one closed union (SPEC.md; Konnectivity's
 * `client.proto`). Pure data.
 *
 * @module
 */

import type { Code } from "../codes/codes.ts";

/**
 * An exact protobuf `int64`: a number while it is a safe integer, a bigint
 * beyond. One value has one representation, so it can be a `Map` key.
 */
export type Int64 = number | bigint;

/** Packet type codes; 0–6 are Konnectivity's, 64 and up are ours (SPEC.md). */
export const PacketType = {
  DIAL_REQ: 0,
  DIAL_RSP: 1,
  CLOSE_REQ: 2,
  CLOSE_RSP: 3,
  DATA: 4,
  DIAL_CLS: 5,
  DRAIN: 6,
  /** Ours: the sender will send no more DATA for this connection (half-close). */
  DATA_END: 64,
} as const;

/** A decoded packet. Switch on `type`. */
export type Packet =
  | DialRequest
  | DialResponse
  | CloseRequest
  | CloseResponse
  | Data
  | CloseDial
  | DrainPacket
  | DataEnd
  | UnknownPacket;

export interface DialRequest {
  readonly type: "DIAL_REQ";
  /** `tcp`, `udp` or `unix`; a peer may write anything. */
  readonly protocol: string;
  /** `host:port`, or a path for `unix`. */
  readonly address: string;
  /** Ties the answer to the question; uniform in [0, 2^63). */
  readonly random: Int64;
}

export interface DialResponse {
  readonly type: "DIAL_RSP";
  /** Empty on success. */
  readonly error: string;
  readonly connectId: Int64;
  readonly random: Int64;
}

export interface CloseRequest {
  readonly type: "CLOSE_REQ";
  readonly connectId: Int64;
  /** Ours: not empty when the connection was reset rather than closed. */
  readonly reset: string;
  /** Ours, beside `reset`: the connection broke behind the sender. */
  readonly lost?: true;
}

export interface CloseResponse {
  readonly type: "CLOSE_RSP";
  readonly error: string;
  readonly connectId: Int64;
  /** Ours: not empty when the connection was reset rather than closed. */
  readonly reset: string;
  /** Ours, beside `reset`: the connection broke behind the sender. */
  readonly lost?: true;
}

export interface Data {
  readonly type: "DATA";
  readonly connectId: Int64;
  readonly data: Uint8Array;
  /**
   * Ours, for `udp`: set when this is a datagram of no bytes. Without it an
   * empty `data` carries nothing at all.
   */
  readonly emptyDatagram?: true;
}

interface CloseDial {
  readonly type: "DIAL_CLS";
  readonly random: Int64;
}

interface DrainPacket {
  readonly type: "DRAIN";
}

export interface DataEnd {
  readonly type: "DATA_END";
  readonly connectId: Int64;
}

/** A type we do not know: ignored by everybody, Go peers included. */
interface UnknownPacket {
  readonly type: "UNKNOWN";
  readonly code: number;
}

// What can be wrong with a peer's packets.
//
// Always the peer's fault: our own mistakes are a `TypeError` or `RangeError`,
// which are not caught. The blast radius is the stream that carried the bytes,
// because the message borders after a bad one cannot be trusted.

/** Thrown by the packet codec and reader. The message names what was seen. */
export class PacketError extends Error {
  override readonly name = "PacketError";
  readonly tunnelCode: Code = "TUN417";
}
