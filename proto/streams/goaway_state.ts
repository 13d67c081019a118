/**
 * GOAWAY in both directions (RFC 9113 §6.8): which streams still count when one
 * end, or both, will take no more.
 *
 * @module
 */

import { type GoawayFrame, UINT31_MAX } from "../frames/frame.ts";
import { ErrorCode, errorCodeName } from "../frames/wire_error.ts";
import type { GoawayInfo } from "./connection_events.ts";
import type { FrameWriter } from "./frame_writer.ts";
import type { StreamTable } from "./stream_table.ts";

export class GoawayState {
  /** The last stream of the peer's that we take; set by our final GOAWAY. */
  #peerIdMax = Infinity;
  #peer: GoawayInfo | undefined;

  constructor(
    private readonly writer: FrameWriter,
    private readonly streams: StreamTable,
  ) {}

  /** The peer's GOAWAY, if it sent one. */
  get peer(): GoawayInfo | undefined {
    return this.#peer;
  }

  /** Streams of the peer's above this id are ignored. */
  get peerIdMax(): number {
    return this.#peerIdMax;
  }

  /** We have sent which stream of the peer's is the last. */
  get isFinal(): boolean {
    return this.#peerIdMax !== Infinity;
  }

  /** Announces the end, and accepts streams that are under way. */
  announce(reason: string): void {
    this.writer.goaway(UINT31_MAX, ErrorCode.NO_ERROR, reason);
  }

  /** Sends what was the last stream, without ending anything. */
  send(code: number, reason: string): void {
    const lastId = Math.min(this.streams.lastPeerId, this.#peerIdMax);
    this.writer.goaway(lastId, code, reason);
  }

  /** Sends it, and accepts no stream behind it. */
  sendFinal(reason: string): void {
    this.send(ErrorCode.NO_ERROR, reason);
    this.#peerIdMax = this.streams.lastPeerId;
  }

  /** Takes the peer's. */
  receive(frame: GoawayFrame): GoawayInfo {
    // It must not grow (§6.8); one that does is not believed.
    const lastStreamId = Math.min(
      frame.lastStreamId,
      this.#peer?.lastStreamId ?? UINT31_MAX,
    );
    const reason = decoder.decode(frame.debugData);
    return this.#peer = { lastStreamId, code: frame.errorCode, reason };
  }
}

/** One for all: each caller that closes in order sends a reason. */
const decoder = new TextDecoder();

/** What a peer's GOAWAY means for the streams that it refuses. */
export function goawaySentence({ code, reason }: GoawayInfo): string {
  return `the peer said GOAWAY: ${errorCodeName(code)} ${reason}`;
}
