/**
 * One gRPC call as the layers above see it, on either side.
 *
 * A call is a head, then messages each way, then a status. Bodies come up as
 * raw bytes (length-prefixed messages, cut anywhere) so that a large message
 * is passed on while it arrives; `message_reader.ts` gathers whole messages for
 * callers that want those.
 *
 * @module
 */

import type { ReceiveBudget } from "../streams/receive_budget.ts";
import type { Metadata } from "./metadata.ts";
import type { Status } from "./status.ts";

/** What both sides can do with a call's outgoing body. */
export interface CallBody {
  /** See `Stream.room`. */
  readonly room: number;
  /** See `Stream.windowBytes`. */
  readonly windowBytes?: number | undefined;
  /** Sends one DATA frame of `head` + `body`; see `Stream.sendFrame`. */
  sendFrame(head: Uint8Array, body: Uint8Array): void;
  /** Asks for `onWritable`; see `Stream.awaitRoom`. */
  awaitRoom(): void;
  /**
   * Sends a whole message, prefix and all. The part that does not fit is kept
   * and sent in order when there is room; `sendFrame` must not be used
   * meanwhile (`room` is 0 as long as anything is kept).
   *
   * @param shared The rest of the message, if many calls send the same and it
   *   never changes: it is kept as it is, not as a copy.
   * @returns `false` when bytes had to be kept: wait for `onWritable`.
   */
  sendMessage(message: Uint8Array, shared?: Uint8Array): boolean;
  /** Bytes kept by `sendMessage`. */
  readonly keptBytes: number;
  /** Returns credit; see `Stream.consumed`. */
  consumed(bytes: number): void;
  /** For a call that many share; see `Stream.divideBudget`. */
  divideBudget(): ReceiveBudget;
}

/** The caller's side of a call. */
export interface ClientCall extends CallBody {
  /** Half-closes after all that was sent (END_STREAM). */
  halfClose(): void;
  /** Gives the call up: RST_STREAM CANCEL. No event follows. */
  cancel(): void;
}

/** Events for the caller. */
export interface ClientCallEvents {
  /** The response head; absent for a trailers-only response. */
  onMetadata(metadata: Metadata): void;
  /** Bytes of the response body; valid during the call; see `Stream.onData`. */
  onBody(chunk: Uint8Array): void;
  onWritable(): void;
  /**
   * The end, exactly once, last. A reset, a lost connection or a passed
   * deadline arrive here too, as the status gRPC maps them to; `lost` is true
   * when no status came from the peer (the link broke or it sent RST_STREAM).
   */
  onStatus(status: Status, trailers: Metadata, lost: boolean): void;
}

/** The callee's side of a call. */
export interface ServerCall extends CallBody {
  /** Such as `/ProxyService/Proxy`. */
  readonly path: string;
  readonly metadata: Metadata;
  readonly authority: string;
  /** When the caller stops waiting, on the connection's clock; else `Infinity`. */
  readonly deadlineMs: number;
  /** Sends the response head now. Otherwise the first message does. */
  sendMetadata(metadata: Metadata): void;
  /** Ends the call with trailers, after all that was sent. */
  finish(status: Status, trailers?: Metadata): void;
  /**
   * Ends the call with trailers now. What `sendMessage` keeps is dropped, even
   * in the middle of a message: a caller that does not read must not be able to
   * keep its call alive.
   */
  abort(status: Status): void;
}

/** Events for the callee. */
export interface ServerCallEvents {
  /** Bytes of the request body; valid during the call; see `Stream.onData`. */
  onBody(chunk: Uint8Array): void;
  /** The caller will send no more messages (END_STREAM). */
  onHalfClose(): void;
  onWritable(): void;
  /**
   * The call ended before `finish`: the caller cancelled it (RST_STREAM), its
   * deadline passed or the connection went. Last event; nothing can be sent.
   */
  onCancel(reason: { readonly lost: boolean; readonly message: string }): void;
}

/** Serves one method. Called when the request head is complete. */
export type MethodHandler = (call: ServerCall) => ServerCallEvents;

// Which content types are gRPC (PROTOCOL-HTTP2, "Content-Type").

/** What we send. The sub-type after `+` is the peer's business, so none. */
export const CONTENT_TYPE = "application/grpc";

/**
 * Whether `contentType` is gRPC: `application/grpc`, alone or with `+proto` or
 * parameters behind it. `application/grpc-web` is another protocol.
 */
export function isGrpcContentType(contentType: string | undefined): boolean {
  return contentType !== undefined &&
    /^application\/grpc(?:$|[+;\s])/i.test(contentType);
}

// The `grpc-timeout` header: at most eight digits and a unit.
//
// Layer: gRPC. Knows the text form only; timers for it are set in
// `server_call.ts` and `client_call.ts`.

const UNIT_MS: ReadonlyMap<string, number> = new Map(
  Object.entries({
    H: 3_600_000,
    M: 60_000,
    S: 1_000,
    m: 1,
    u: 1e-3,
    n: 1e-6,
  }),
);

/** Coarser and coarser, so that the first unit that fits is the exactest. */
const COARSER_UNITS = ["m", "S", "M", "H"] as const;

/** PROTOCOL-HTTP2: "TimeoutValue → positive integer as ASCII of at most 8 digits". */
const TIMEOUT_VALUE_MAX = 99_999_999;

/**
 * The longest delay that is given to a timer: 2^31 - 1 ms, about 24 days.
 * JavaScript timers fire *at once* beyond it, so that a peer's `99999999H`
 * would end its call immediately. Longer waits are no waits at all.
 */
export const TIMER_DELAY_MS_MAX = 2 ** 31 - 1;

/**
 * Reads a `grpc-timeout` value.
 *
 * @returns Milliseconds, possibly a fraction; `undefined` when malformed.
 */
export function parseTimeout(text: string): number | undefined {
  const match = /^([0-9]{1,8})([HMSmun])$/.exec(text);
  return match === null
    ? undefined
    : Number(match[1]) * UNIT_MS.get(match[2]!)!;
}

/**
 * Writes `timeoutMs` as a `grpc-timeout` value, rounded up: a callee that gives
 * up a little late does no harm, one that gives up early fails calls that are
 * still waited for. Eight digits of hours are the longest value, so more is cut
 * to that.
 */
export function formatTimeout(timeoutMs: number): string {
  if (!(timeoutMs > 0)) return "0m";
  for (const unit of COARSER_UNITS) {
    const value = Math.ceil(timeoutMs / UNIT_MS.get(unit)!);
    if (value <= TIMEOUT_VALUE_MAX) return `${value}${unit}`;
  }
  return `${TIMEOUT_VALUE_MAX}H`;
}
