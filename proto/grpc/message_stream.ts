/**
 * A call with a stream of whole messages each way, for the one who starts it.
 *
 * Layer: gRPC. Knows no particular message.
 *
 * @module
 */

import type { ClientCall } from "./call.ts";
import { type CallOptions, startCall, type StreamOpener } from "./client.ts";
import {
  ACCEPTED_ENCODINGS,
  encodingOf,
  MessageReader,
} from "./message_reader.ts";
import type { Status } from "./status.ts";

/** What the caller receives. */
export interface MessageStreamEvents {
  /** A `GrpcError` that this throws ends the call with that status. */
  onMessage(message: Uint8Array): void;
  /**
   * The end, once, unless it was cancelled. OK is an end, too.
   *
   * @param isLost No server has said it.
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
 * Starts the call.
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
