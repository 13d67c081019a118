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
   * Sends a whole message, prefix and all. What does not fit now is kept and
   * sent in order as room comes; `sendFrame` must not be used meanwhile
   * (`room` is 0 as long as anything is kept).
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
  /** No more messages from us (END_STREAM), behind everything sent so far. */
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
  /** Ends the call with trailers, behind everything sent so far. */
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
