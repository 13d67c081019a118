/**
 * The errors of peers that more than one kind of frame can make, in one
 * wording.
 *
 * @module
 */

import { ErrorCode, WireError } from "../frames/wire_error.ts";
import type { PendingBlock } from "./header_block.ts";

/**
 * RFC 7540 §5.3.1, of which RFC 9113 only kept the field: a stream that
 * depends on itself shows a broken peer.
 */
export function checkDependency({ streamId, dependsOn }: PendingBlock): void {
  if (dependsOn !== streamId) return;
  throw protocolError(
    "5.3.2",
    `Cannot accept a priority: stream ${streamId} depends on itself`,
    streamId,
  );
}

/** PROTOCOL_ERROR, for one stream when it is given. */
export function protocolError(
  section: string,
  message: string,
  streamId?: number,
): WireError {
  return new WireError(
    ErrorCode.PROTOCOL_ERROR,
    section,
    message,
    streamId === undefined
      ? { scope: "connection" }
      : { scope: "stream", streamId },
  );
}

/** A frame came for a stream that was never opened. */
export function idleError(type: string, streamId: number): WireError {
  return protocolError(
    "5.1",
    `Cannot accept ${type} on stream ${streamId}: it is idle`,
  );
}

/** A header list above our MAX_HEADER_LIST_SIZE. */
export function tooLarge(streamId: number, listBytes: number): WireError {
  return new WireError(
    ErrorCode.ENHANCE_YOUR_CALM,
    "10.5.1",
    `Cannot accept stream ${streamId}: its header list has ${listBytes} bytes`,
    { scope: "stream", streamId },
  );
}

/** WINDOW_UPDATE beyond what a window may be. */
export function overflow(streamId: number, increment: number): WireError {
  return new WireError(
    ErrorCode.FLOW_CONTROL_ERROR,
    "6.9.1",
    `Cannot apply WINDOW_UPDATE of ${increment}: the window would pass 2^31-1`,
    streamId === 0 ? { scope: "connection" } : { scope: "stream", streamId },
  );
}
