/**
 * One HTTP/2 stream as the layer above sees it.
 *
 * This is the seam between the protocol engine (`connection.ts`) and everything
 * that rides on it. Calls go down, events come up, both synchronous; nothing
 * here knows what a request means.
 *
 * @module
 */

import type { HeaderField } from "../hpack/header_field.ts";
import type { ReceiveBudget } from "./receive_budget.ts";

/** How a stream ended before both ends had finished. */
export interface StreamReset {
  /**
   * - `peer`: it sent RST_STREAM.
   * - `local`: we sent RST_STREAM, because it broke a rule.
   * - `refused`: the peer certainly did not process it (REFUSED_STREAM, or an
   *   id above the last one in its GOAWAY; RFC 9113 §8.7): safe to try again.
   * - `lost`: the connection went away under it.
   */
  readonly by: "peer" | "local" | "refused" | "lost";
  /** Error code of RFC 9113 §7; unknown codes stay numbers. */
  readonly code: number;
  /** One sentence for people. */
  readonly reason: string;
}

/** What happens to a stream. Called synchronously from `Connection.receive`. */
export interface StreamEvents {
  /**
   * The request's or the final response's header section.
   *
   * @returns The receiver of further events, if it is another one: a request's
   *   head names its method.
   */
  onHeaders(fields: readonly HeaderField[]): StreamEvents | void;
  /** A 1xx response (client role), as often as the server likes. */
  onInformational?(fields: readonly HeaderField[]): void;
  /**
   * A piece of the body, cut wherever the network cut it.
   *
   * `chunk` is a view into the read buffer: valid only during this call. The
   * receiver must answer with {@linkcode Stream.consumed} sooner or later, for
   * exactly as many bytes, or the peer stops sending.
   */
  onData(chunk: Uint8Array): void;
  /** The trailer section; {@linkcode StreamEvents.onEnd} follows. */
  onTrailers(fields: readonly HeaderField[]): void;
  /** The peer will send nothing more on this stream (END_STREAM). */
  onEnd(): void;
  /** There is room again after `write`, `room` or `sendFrame` came up short. */
  onWritable(): void;
  /**
   * The stream is over, abnormally. The last event. Not called for a `reset`
   * of our own making.
   */
  onReset(reset: StreamReset): void;
}

/** A stream, from open to closed. */
export interface Stream {
  /** 0 while a client's stream waits for MAX_CONCURRENT_STREAMS. */
  readonly id: number;

  /**
   * Sends a header section: the response head (also 1xx), or trailers when one
   * was sent before. Clients give theirs to `Connection.openStream`. Trailers
   * wait behind data that `write` has taken; nothing else can wait here.
   */
  sendHeaders(fields: readonly HeaderField[], endStream: boolean): void;

  /**
   * Bytes that one DATA frame may carry right now: the least of both windows,
   * the peer's frame size and the room in the connection's output. 0 when the
   * stream cannot send.
   */
  readonly room: number;

  /** The smaller of both windows, whatever else blocks it; for people. */
  readonly windowBytes?: number;

  /**
   * Sends `head` and `body` as one DATA frame, built in place in the output
   * (each byte is copied exactly once).
   *
   * @param head Bytes in front, such as a message prefix. May be empty.
   * @param body The payload; free for reuse when this returns.
   * @throws {RangeError} If both together exceed `room`: a bug of the caller.
   */
  sendFrame(head: Uint8Array, body: Uint8Array, endStream?: boolean): void;

  /**
   * Sends as much of `chunk` as fits, in as many frames as needed.
   *
   * @returns How many bytes were taken. After less than all, `onWritable` is
   *   called once there is room, and the caller offers the rest again.
   */
  write(chunk: Uint8Array): number;

  /** Asks for `onWritable` once there is room; streams take turns. */
  awaitRoom(): void;

  /** Sends an empty DATA frame with END_STREAM; flow control never stops it. */
  end(): void;

  /** Returns credit for `bytes` of received data that were passed on. */
  consumed(bytes: number): void;

  /**
   * Takes the stream out of the process's budget, before any data has come:
   * from now on the layer above reports to the budget which of its conduits'
   * bytes wait, and gives up one of those instead of the stream.
   *
   * @returns The budget: join it, and leave it when the stream is over.
   * @throws {TypeError} When data has come: a bug of the caller.
   */
  divideBudget(): ReceiveBudget;

  /** Sends RST_STREAM and forgets the stream. No event follows. */
  reset(code: number): void;
}

// A client's answer to a stream that its server opens.

/** Push is off (RFC 9113 §8.4), so the engine never calls this. */
export function refusePush(): StreamEvents {
  throw new TypeError("Cannot accept a stream: push is disabled");
}
