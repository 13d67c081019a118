/**
 * The contract with the code that serves dials.
 *
 * @module
 */

import type { Metadata } from "../grpc/metadata.ts";
import type { Conduit } from "../transfer/conduit.ts";
import { type ConnectionId, readConnectionId } from "../peer/connection_id.ts";
import type { DialError, DialTarget } from "../peer/dial_error.ts";
import type { TraceContext } from "../peer/trace_context.ts";
import type { PendingDial } from "./link.ts";
import { canonicalInt64 } from "../packets/int64.ts";
import type { Int64 } from "../packets/packet.ts";

/** Receives the outcome of a dial; exactly one of the two is called, once. */
export interface DialAnswer {
  /** Connected. `conduit` is not attached yet; the caller does that. */
  connected(conduit: Conduit): void;
  failed(error: DialError): void;
}

/** Facts about a dial besides its target. */
export interface DialContext {
  /** The metadata of the call; empty in the packets carrier. */
  readonly metadata: Metadata;
  /** What its DIAL_REQ carries; absent: the asker knows of no ids. */
  readonly id?: ConnectionId | undefined;
  /** The asker's span, where the carrier has a place for it. */
  readonly trace?: TraceContext | undefined;
  /**
   * Takes over what the caller has sent already, to send it ahead with the
   * dial. The taker delivers it, before anything else and once: it does not
   * come through the conduit again. Not taken, it comes as usual.
   */
  takeEarlyData(): Uint8Array;
}

/**
 * Dials a target. May answer before it returns.
 *
 * @returns `cancel`, called at most once and only before an answer; an answer
 *   that crosses it is harmless.
 */
export type DialHandler = (
  target: DialTarget,
  answer: DialAnswer,
  context: DialContext,
) => PendingDial;

/** Resets a conduit that is not wanted any more. */
export function abandon(conduit: Conduit, reason: string): void {
  conduit.attach({
    onData: () => {},
    onWritable: () => {},
    onEnd: () => {},
    onClose: () => {},
  });
  conduit.reset(reason);
}

/** A dial that fails at once. */
export function failedDial(answer: DialAnswer, error: DialError): PendingDial {
  answer.failed(error);
  return { cancel() {} };
}

// The `random` of a DIAL_REQ: the key that ties a DIAL_RSP to its DIAL_REQ.
//
// A Konnectivity server keeps the pending dials of all its frontends in one map
// under this number alone, so it has to be unguessable and uniform wherever a
// Go peer may be listening. The source of random numbers is an argument.
//
// It is also the connection's id: each hop passes it on, and Go peers write it
// into their logs, as `dialID`.

/** Fills `bytes` with random ones, such as `crypto.getRandomValues`. */
export type Randomness = (bytes: Uint8Array<ArrayBuffer>) => unknown;

/** A fresh dial id, uniform in [0, 2^63) as Go's `rand.Int63()` is. */
export function randomDialId(randomness: Randomness): Int64 {
  const bytes = new Uint8Array(8);
  randomness(bytes);
  const value = new DataView(bytes.buffer).getBigUint64(0) >> 1n;
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}

/** The `random` that carries `id`; an int64 as Go reads it. */
export function dialIdOf(id: ConnectionId): Int64 {
  return canonicalInt64(BigInt.asIntN(64, BigInt(`0x${id}`)));
}

/** The id that `random` carries; absent from peers that count their dials. */
export function connectionIdOf(random: Int64): ConnectionId | undefined {
  const text = BigInt.asUintN(64, BigInt(random)).toString(16);
  return readConnectionId(text.padStart(16, "0"));
}
