/**
 * Starts calls on a connection.
 *
 * Layer: gRPC. Writes request heads; the rest of a call is in `client_call.ts`.
 *
 * @module
 */

import type { HeaderField } from "../hpack/header_field.ts";
import { ConnectionUnavailableError } from "../streams/connection_events.ts";
import type { Stream, StreamEvents } from "../streams/stream.ts";
import type { Timers } from "../sync/clock.ts";
import {
  type ClientCall,
  type ClientCallEvents,
  CONTENT_TYPE,
  formatTimeout,
} from "./call.ts";
import { ClientCallStream } from "./client_call.ts";
import {
  ACCEPTED_ENCODINGS,
  encodingOf,
  MessageReader,
  OnlyMessage,
} from "./message_reader.ts";
import { appendMetadata, type Metadata } from "./metadata.ts";
import { GrpcError, type Status, StatusCode } from "./status.ts";

/** What a call needs of `Connection` (client role). */
export interface StreamOpener {
  openStream(
    fields: readonly HeaderField[],
    endStream: boolean,
    events: StreamEvents,
  ): Stream;
}

/** See {@linkcode startCall}. */
export interface CallOptions {
  /** Such as `/ProxyService/Proxy`. */
  readonly path: string;
  readonly authority: string;
  /** What the bytes below travel in; `http` unless given. */
  readonly scheme?: "http" | "https" | undefined;
  readonly metadata?: Metadata | undefined;
  /** How long the caller waits, sent to the callee (`grpc-timeout`). */
  readonly timeoutMs?: number;
  /** Timers to keep the deadline here too, whatever the callee does. */
  readonly timers?: Timers;
  /** For `grpc-accept-encoding`: what the reader of the answer can undo. */
  readonly acceptEncoding?: string;
  /**
   * What {@linkcode requestHead} made of these same options, for callers that
   * make many equal calls.
   */
  readonly head?: readonly HeaderField[];
}

/**
 * Starts a call: sends the request head.
 *
 * @throws {GrpcError} UNAVAILABLE when the connection takes no more calls. No
 *   event follows then.
 */
export function startCall(
  connection: StreamOpener,
  options: CallOptions,
  events: ClientCallEvents,
): ClientCall {
  const { timeoutMs, timers } = options;
  const fields = options.head ?? requestHead(options);
  try {
    return new ClientCallStream(
      (streamEvents) => connection.openStream(fields, false, streamEvents),
      events,
      timeoutMs === undefined || timers === undefined
        ? undefined
        : { timeoutMs, timers },
    );
  } catch (error) {
    if (!(error instanceof ConnectionUnavailableError)) throw error;
    throw new GrpcError(StatusCode.UNAVAILABLE, error.message);
  }
}

/** See {@linkcode unaryCall}. */
export interface UnaryCallOptions extends CallOptions {
  readonly request: Uint8Array;
  /** Longest answer accepted; 4 MiB unless given. */
  readonly messageBytesMax?: number;
}

/**
 * Sends one message and waits for one.
 *
 * @throws {GrpcError} For every way in which that can fail, also UNAVAILABLE
 *   when the connection takes no more calls.
 */
export async function unaryCall(
  connection: StreamOpener,
  options: UnaryCallOptions,
): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  const only = new OnlyMessage("response", options.messageBytesMax);
  const call = startCall(connection, {
    acceptEncoding: ACCEPTED_ENCODINGS,
    ...options,
  }, {
    onMetadata(metadata) {
      only.expect(encodingOf(metadata));
    },
    onBody(chunk) {
      only.push(chunk);
      call.consumed(chunk.length);
    },
    onWritable() {},
    onStatus(status) {
      if (status.code !== StatusCode.OK) {
        reject(
          new GrpcError(status.code, status.message, status.tunnelCode),
        );
      } else {
        // A promise runs this at once and turns a throw into a rejection.
        resolve(new Promise((answer) => answer(only.take())));
      }
    },
  });
  call.sendMessage(options.request);
  call.halfClose();
  return await promise;
}

/** What the caller of {@linkcode openMessageStream} receives. */
export interface MessageStreamEvents {
  /** A `GrpcError` that this throws ends the call with that status. */
  onMessage(message: Uint8Array): void;
  /**
   * The end, once, unless it was cancelled. OK is an end, too. @param isLost No
   * server has sent it.
   */
  onEnd(status: Status, isLost: boolean): void;
}

export interface MessageStream {
  /** Nothing happens when the call is over. */
  send(message: Uint8Array): void;
  /** Gives the call up; no event follows. */
  cancel(): void;
}

/**
 * Starts a call with a stream of whole messages each way.
 *
 * @param messageBytesMax Longest message accepted.
 * @throws {GrpcError} UNAVAILABLE when the connection takes no more calls.
 */
export function openMessageStream(
  connection: StreamOpener,
  options: CallOptions,
  messageBytesMax: number,
  events: MessageStreamEvents,
): MessageStream {
  let reader: MessageReader | undefined;
  const withEncoding = { acceptEncoding: ACCEPTED_ENCODINGS, ...options };
  const call: ClientCall = startCall(connection, withEncoding, {
    onMetadata(metadata) {
      reader = new MessageReader({
        messageBytesMax,
        encoding: encodingOf(metadata),
        onMessage: (message) => events.onMessage(message),
      });
    },
    onBody(chunk) {
      reader?.push(chunk);
      call.consumed(chunk.length);
    },
    onWritable() {},
    onStatus: (status, _trailers, isLost) => events.onEnd(status, isLost),
  });
  return {
    send: (message) => void call.sendMessage(message),
    cancel: () => call.cancel(),
  };
}

/**
 * The head of a call's request, frozen so that its coding may be remembered.
 * The order is the specification's: "Request-Headers".
 */
export function requestHead(options: CallOptions): readonly HeaderField[] {
  const fields: HeaderField[] = [
    { name: ":method", value: "POST" },
    { name: ":scheme", value: options.scheme ?? "http" },
    { name: ":path", value: options.path },
    { name: ":authority", value: options.authority },
    // Detects proxies that drop trailers, without which there is no status.
    { name: "te", value: "trailers" },
    { name: "content-type", value: CONTENT_TYPE },
  ];
  if (options.timeoutMs !== undefined && options.timeoutMs !== Infinity) {
    const value = formatTimeout(options.timeoutMs);
    fields.push({ name: "grpc-timeout", value });
  }
  if (options.acceptEncoding !== undefined) {
    const value = options.acceptEncoding;
    fields.push({ name: "grpc-accept-encoding", value });
  }
  appendMetadata(fields, options.metadata);
  return Object.freeze(fields);
}
