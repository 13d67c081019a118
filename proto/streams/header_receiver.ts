/**
 * HEADERS and CONTINUATION as they come (RFC 9113 §6.2, §6.10 and §8.1): the
 * block is gathered and decoded, and goes to the stream it belongs to, which
 * for a client's request is opened here, if it may be.
 *
 * @module
 */

import type { ContinuationFrame, HeadersFrame } from "../frames/frame.ts";
import { ErrorCode, WireError } from "../frames/wire_error.ts";
import { type HeaderBlock, HpackDecoder } from "../hpack/decoder.ts";
import { HpackError } from "../hpack/header_field.ts";
import type { AbuseLimits } from "./abuse_limits.ts";
import {
  checkDependency,
  idleError,
  protocolError,
  tooLarge,
} from "./frame_errors.ts";
import { HeaderBlockGatherer, type PendingBlock } from "./header_block.ts";
import { checkSection } from "./header_sections.ts";
import type { ReceiverHost } from "./stream_host.ts";
import type { LocalSettings } from "./settings.ts";

export class HeaderReceiver {
  readonly #hpack: HpackDecoder;
  readonly #blocks: HeaderBlockGatherer;
  readonly #maxConcurrentStreams: number;

  constructor(
    private readonly host: ReceiverHost,
    settings: LocalSettings,
    limits: AbuseLimits,
  ) {
    this.#hpack = new HpackDecoder({
      tableSizeMax: settings.headerTableSize,
      headerListBytesMax: settings.maxHeaderListSize,
    });
    this.#blocks = new HeaderBlockGatherer(
      limits.headerBlockBytesMax,
      limits.headerBlockFramesMax,
      host.shared,
    );
    this.#maxConcurrentStreams = settings.maxConcurrentStreams;
  }

  /** The block that CONTINUATION must complete before anything else comes. */
  get pending(): PendingBlock | undefined {
    return this.#blocks.pending;
  }

  /** When {@linkcode check} is due. */
  get nextDeadlineMs(): number {
    return this.#blocks.deadlineMs;
  }

  /** @returns What is wrong when a block takes too long. */
  check(nowMs: number): WireError | undefined {
    return nowMs < this.#blocks.deadlineMs ? undefined : this.#blocks.overdue();
  }

  /** The connection is over: drops the gathered part. */
  drop(): void {
    this.#blocks.drop();
  }

  /** HEADERS. */
  onHeaders(frame: HeadersFrame): void {
    if (!frame.endHeaders) {
      return this.#blocks.begin(frame, this.host.nowMs());
    }
    const { streamId, endStream, dependsOn } = frame;
    this.#onBlock({ streamId, endStream, dependsOn }, frame.fragment);
  }

  /** CONTINUATION. */
  onContinuation(frame: ContinuationFrame): void {
    const head = this.#blocks.pending;
    const block = this.#blocks.add(frame);
    if (head !== undefined && block !== undefined) this.#onBlock(head, block);
  }

  #onBlock(head: PendingBlock, bytes: Uint8Array): void {
    // Decoded before anything else is checked: blocks of streams that are gone
    // change the table, too (§4.3).
    const block = this.#decodeBlock(bytes);
    const { streamId, endStream } = head;
    const stream = this.host.streams.get(streamId);
    if (stream === undefined) return this.#onAbsentHeaders(head, block);
    checkDependency(head);
    if (block.tooLarge) throw tooLarge(streamId, block.listBytes);
    stream.receiveHeaders(block.fields, endStream);
  }

  #decodeBlock(bytes: Uint8Array): HeaderBlock {
    try {
      return this.#hpack.decode(bytes);
    } catch (error) {
      if (!(error instanceof HpackError)) throw error;
      throw new WireError(ErrorCode.COMPRESSION_ERROR, "4.3", error.message);
    }
  }

  #onAbsentHeaders(head: PendingBlock, block: HeaderBlock): void {
    const { streamId } = head;
    const { streams, role } = this.host;
    if (streams.absent(streamId) === "idle") {
      if (role === "client" || streams.isLocal(streamId)) {
        throw idleError("HEADERS", streamId);
      }
      return this.#openStream(head, block);
    }
    if (streams.closed.isUnderWay(streamId)) {
      // A block costs its sender little and us the decoding.
      return this.host.guard.count("idleFrames", this.host.nowMs());
    }
    const how = streams.closed.recall(streamId);
    if (how === "forgotten" && role === "server") {
      // An id below the last one was skipped and can never be used (§5.1.1).
      throw protocolError(
        "5.1.1",
        `Cannot open stream ${streamId}: the last one was ${streams.lastPeerId}`,
      );
    }
    throw new WireError(
      ErrorCode.STREAM_CLOSED,
      "5.1",
      `Cannot accept HEADERS on stream ${streamId}: it is closed`,
      how === "ended" ? { scope: "connection" } : { scope: "stream", streamId },
    );
  }

  #openStream(head: PendingBlock, block: HeaderBlock): void {
    const { streamId, endStream } = head;
    const { streams } = this.host;
    streams.lastPeerId = streamId;
    if (streamId > this.host.peerIdMax()) {
      // Sent before our GOAWAY arrived; the client will try elsewhere (§6.8).
      return streams.closed.remember(streamId, "ignored");
    }
    // From here on the stream exists, so that a refusal is an RST_STREAM, and
    // later frames on it are ignored.
    streams.closed.remember(streamId, "resetByUs");
    checkDependency(head);
    if (streams.peerOpen >= this.#maxConcurrentStreams) {
      throw new WireError(
        ErrorCode.REFUSED_STREAM,
        "5.1.2",
        `Cannot open stream ${streamId}: ${this.#maxConcurrentStreams} are open`,
        { scope: "stream", streamId },
      );
    }
    if (block.tooLarge) throw tooLarge(streamId, block.listBytes);
    const check = checkSection("request", block.fields);
    if (!check.ok) {
      throw protocolError(
        "8.1.1",
        `Cannot accept stream ${streamId}: ${check.problem}`,
        streamId,
      );
    }
    if (!this.host.shared.takeStream()) {
      throw new WireError(
        ErrorCode.REFUSED_STREAM,
        "5.1.2",
        `Cannot open stream ${streamId}: too many are open elsewhere`,
        { scope: "stream", streamId },
      );
    }
    this.host.onRequest(streamId, block.fields, endStream, check.facts);
  }
}
