/**
 * One ADS stream: a gRPC call that carries a client's requests and the server's
 * responses, for as long as it lasts.
 *
 * @module
 */

import type { ClientCall } from "../../proto/grpc/call.ts";
import { type CallOptions, startCall } from "../../proto/grpc/client.ts";
import {
  ACCEPTED_ENCODINGS,
  encodingOf,
  MessageReader,
} from "../../proto/grpc/message_reader.ts";
import type { Status } from "../../proto/grpc/status.ts";
import type { Connection } from "../../proto/streams/connection.ts";
import { decodeResponse, encodeRequest } from "../../proto/xds/client_codec.ts";
import type {
  DiscoveryMode,
  DiscoveryRequest,
  DiscoveryResponse,
} from "../../proto/xds/discovery.ts";

/** Paths of the two methods (`envoy.service.discovery.v3`). */
export const ADS_PATHS: Readonly<Record<DiscoveryMode, string>> = {
  sotw:
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
  delta:
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
};

/**
 * Longest response accepted. Responses about clusters cannot be divided: those of
 * 20,000 services for a node proxy are a third of it.
 */
export const RESPONSE_BYTES_MAX = 64 * 1024 * 1024;

/** What a stream needs. */
export interface AdsStreamOptions
  extends Pick<CallOptions, "authority" | "scheme" | "metadata"> {
  readonly mode: DiscoveryMode;
}

/** Events of a stream. */
export interface AdsStreamEvents {
  /** A `GrpcError` that this throws ends the call with that status. */
  onReceived(received: DiscoveryResponse): void;
  /**
   * The end, once, unless it was cancelled. OK is an end, too.
   *
   * @param isLost No status came from the server: the connection broke.
   */
  onEnd(status: Status, isLost: boolean): void;
}

export interface AdsCall {
  /** Nothing happens when the call is over. */
  send(request: DiscoveryRequest): void;
  /** Gives the call up; no event follows. */
  cancel(): void;
}

/**
 * Starts the call.
 *
 * @throws {GrpcError} UNAVAILABLE when the connection takes no more calls.
 */
export function openAdsStream(
  connection: Connection,
  options: AdsStreamOptions,
  events: AdsStreamEvents,
): AdsCall {
  const { mode } = options;
  let reader: MessageReader | undefined;
  let isOver = false;
  const call: ClientCall = startCall(connection, {
    ...options,
    path: ADS_PATHS[mode],
    acceptEncoding: ACCEPTED_ENCODINGS,
  }, {
    onMetadata(metadata) {
      reader = new MessageReader({
        messageBytesMax: RESPONSE_BYTES_MAX,
        encoding: encodingOf(metadata),
        onMessage: (message) =>
          events.onReceived(decodeResponse(mode, message)),
      });
    },
    onBody(chunk) {
      reader?.push(chunk);
      call.consumed(chunk.length);
    },
    onWritable() {},
    onStatus(status, _trailers, isLost) {
      if (isOver) return;
      isOver = true;
      events.onEnd(status, isLost);
    },
  });
  return {
    send: (request) => void call.sendMessage(encodeRequest(request)),
    cancel() {
      isOver = true;
      call.cancel();
    },
  };
}
