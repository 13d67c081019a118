/**
 * What each frame of the peer's means (RFC 9113 §6), in the order in which
 * frames come: the receiving half of the engine.
 *
 * It finds the stream and checks what no single stream can know (order of
 * frames, ids, the connection's window, abuse), then hands on. Errors of the
 * peer's are thrown as `WireError`, caught here in one place, and given to the
 * host; nothing a peer sends gets out of `receive`.
 *
 * @module
 */

import type {
  DataFrame,
  Frame,
  GoawayFrame,
  HeadersFrame,
  PingFrame,
  RstStreamFrame,
  Setting,
  WindowUpdateFrame,
} from "../frames/frame.ts";
import { FrameDecoder } from "../frames/frame_decoder.ts";
import { ErrorCode, errorCodeName, WireError } from "../frames/wire_error.ts";
import { type HeaderBlock, HpackDecoder } from "../hpack/decoder.ts";
import type { HeaderField } from "../hpack/header_field.ts";
import { HpackError } from "../hpack/hpack_error.ts";
import {
  type AbuseGuard,
  type ConnectionLimits,
  TINY_INCREMENT_OCTETS,
} from "./abuse_limits.ts";
import type { Role } from "./connection_events.ts";
import type { EngineStream } from "./engine_stream.ts";
import type { ReceiveWindow } from "./flow_window.ts";
import { HeaderBlockGatherer, type PendingBlock } from "./header_block.ts";
import { checkSection, type SectionFacts } from "./header_sections.ts";
import { PrefaceMatcher } from "./preface.ts";
import type { SendingSide } from "./sending_side.ts";
import type { LocalSettings } from "./settings.ts";
import type { StreamTable } from "./stream_table.ts";

/** What the receiver needs of its connection. */
export interface ReceiverHost {
  readonly role: Role;
  readonly streams: StreamTable;
  readonly sending: SendingSide;
  readonly guard: AbuseGuard;
  readonly receiveWindow: ReceiveWindow;
  /** True once nothing more is to be read. */
  isClosed(): boolean;
  /** Streams of the peer's above this id are ignored (we sent GOAWAY). */
  peerIdMax(): number;
  /** When the running call of `receive` began. */
  nowMs(): number;
  onRequest(
    streamId: number,
    fields: readonly HeaderField[],
    endStream: boolean,
    facts: SectionFacts,
  ): void;
  onSettings(settings: readonly Setting[]): void;
  onSettingsAck(): void;
  onPingAck(opaque: Uint8Array): void;
  onGoaway(frame: GoawayFrame): void;
  /** The peer broke a rule that costs the connection. */
  onError(error: WireError): void;
}

/** See the module description. */
export class FrameReceiver {
  readonly #host: ReceiverHost;
  readonly #decoder: FrameDecoder;
  readonly #hpack: HpackDecoder;
  readonly #blocks: HeaderBlockGatherer;
  readonly #preface: PrefaceMatcher | undefined;
  readonly #maxConcurrentStreams: number;
  #hasSettings = false;
  /** Where the pieces of the running DATA frame go; nowhere if undefined. */
  #dataStream: EngineStream | undefined;

  constructor(
    host: ReceiverHost,
    settings: LocalSettings,
    limits: ConnectionLimits,
  ) {
    this.#host = host;
    this.#decoder = new FrameDecoder(settings.maxFrameSize);
    this.#hpack = new HpackDecoder({
      tableSizeMax: settings.headerTableSize,
      headerListOctetsMax: settings.maxHeaderListSize,
    });
    this.#blocks = new HeaderBlockGatherer(
      limits.headerBlockOctetsMax,
      limits.headerBlockFramesMax,
    );
    this.#maxConcurrentStreams = settings.maxConcurrentStreams;
    this.#preface = host.role === "server" ? new PrefaceMatcher() : undefined;
  }

  /** True when the peer's octets may end here without cutting a frame. */
  get isBetweenFrames(): boolean {
    return this.#decoder.isBetweenFrames && this.#blocks.pending === undefined;
  }

  /** Takes everything out of `chunk`. */
  receive(chunk: Uint8Array): void {
    const { guard, sending } = this.#host;
    let isPushed = false;
    while (!this.#host.isClosed()) {
      try {
        if (!isPushed) {
          isPushed = true;
          const skipped = this.#preface?.match(chunk) ?? 0;
          this.#decoder.push(chunk.subarray(skipped));
        }
        const frame = this.#decoder.next();
        if (frame === undefined) return;
        this.#dispatch(frame);
        guard.checkControlOctets(sending.controlOctets);
      } catch (error) {
        if (!(error instanceof WireError)) throw error;
        this.#refuse(error);
      }
    }
  }

  /** The one place that decides how far an error of the peer's reaches. */
  #refuse(error: WireError): void {
    const { blast } = error;
    const { streams, sending, guard } = this.#host;
    if (blast.scope === "connection") return this.#host.onError(error);
    try {
      // CVE-2025-8671: provoked resets get round the limit of streams too.
      guard.count("resets", this.#host.nowMs());
    } catch (calm) {
      if (!(calm instanceof WireError)) throw calm;
      return this.#host.onError(calm);
    }
    const { streamId } = blast;
    const stream = streams.get(streamId);
    if (stream !== undefined) return stream.fail(error.code, error.message);
    // RST_STREAM must not be sent for an idle stream (§6.4).
    if (streams.absent(streamId) === "idle") return this.#host.onError(error);
    sending.writer.rstStream(streamId, error.code);
  }

  #dispatch(frame: Frame): void {
    if (!this.#hasSettings) this.#checkFirst(frame);
    const pending = this.#blocks.pending;
    if (pending !== undefined && frame.type !== "CONTINUATION") {
      throw protocolError(
        "6.10",
        `Cannot accept ${frame.type}: the header block of stream ${pending.streamId} is open`,
      );
    }
    switch (frame.type) {
      case "DATA":
        return this.#onData(frame);
      case "HEADERS":
        return this.#onHeaders(frame);
      case "PRIORITY":
        return this.#onPriority(frame.streamId, frame.dependsOn);
      case "RST_STREAM":
        return this.#onRstStream(frame);
      case "SETTINGS":
        return this.#onSettings(frame.ack, frame.settings);
      case "PUSH_PROMISE":
        throw protocolError(
          "8.4",
          "Cannot accept PUSH_PROMISE: push was never enabled",
        );
      case "PING":
        return this.#onPing(frame);
      case "GOAWAY":
        return this.#host.onGoaway(frame);
      case "WINDOW_UPDATE":
        return this.#onWindowUpdate(frame);
      case "CONTINUATION": {
        const block = this.#blocks.add(frame);
        if (block !== undefined) this.#onBlock(pending!, block);
        return;
      }
      case "UNKNOWN":
        return this.#countIdle();
    }
  }

  /** §3.4: the preface of either side continues with SETTINGS. */
  #checkFirst(frame: Frame): void {
    if (frame.type !== "SETTINGS" || frame.ack) {
      throw protocolError(
        "3.4",
        `Cannot accept ${frame.type} as the first frame, wanted SETTINGS`,
      );
    }
    this.#hasSettings = true;
  }

  #countIdle(): void {
    this.#host.guard.count("idleFrames", this.#host.nowMs());
  }

  // --- §6.1 DATA -------------------------------------------------------------

  #onData(frame: DataFrame): void {
    if (frame.isFirst) {
      this.#dataStream = undefined;
      this.#chargeConnection(frame);
      this.#dataStream = this.#findDataStream(frame);
    }
    this.#dataStream?.receiveData(frame.data, frame.endStream);
  }

  #chargeConnection({ flowOctets, paddingOctets, endStream }: DataFrame): void {
    const { receiveWindow, sending, guard } = this.#host;
    if (!receiveWindow.receive(flowOctets)) {
      throw new WireError(
        ErrorCode.FLOW_CONTROL_ERROR,
        "6.9.1",
        `Cannot accept ${flowOctets} octets of DATA: the connection's window has ${receiveWindow.available}`,
      );
    }
    // Given back on receipt: what a stream may pin is bounded by its own
    // window, and a stalled stream must not hold the others' credit.
    receiveWindow.release(flowOctets);
    const increment = receiveWindow.takeUpdate();
    if (increment > 0) sending.writer.windowUpdate(0, increment);
    if (flowOctets > paddingOctets) {
      guard.refund("emptyData");
      guard.refund("pings");
    } else if (!endStream) {
      guard.count("emptyData", this.#host.nowMs());
    }
  }

  #findDataStream(frame: DataFrame): EngineStream | undefined {
    const { streamId, flowOctets, paddingOctets } = frame;
    const { streams } = this.#host;
    const stream = streams.get(streamId);
    if (stream !== undefined) {
      stream.receiveDataStart(flowOctets, paddingOctets);
      return stream;
    }
    if (this.#isIgnored(streamId)) return undefined;
    if (streams.absent(streamId) === "idle") throw idleError("DATA", streamId);
    throw new WireError(
      ErrorCode.STREAM_CLOSED,
      "5.1",
      `Cannot accept DATA on stream ${streamId}: it is closed`,
      { scope: "stream", streamId },
    );
  }

  /** Frames that were under way when we gave the stream up (§5.1, §6.8). */
  #isIgnored(streamId: number): boolean {
    const how = this.#host.streams.closed.recall(streamId);
    if (how !== "resetByUs" && how !== "ignored") return false;
    this.#countIdle();
    return true;
  }

  // --- §6.2 HEADERS, §6.10 CONTINUATION --------------------------------------

  #onHeaders(frame: HeadersFrame): void {
    if (!frame.endHeaders) return this.#blocks.begin(frame);
    const { streamId, endStream, dependsOn } = frame;
    this.#onBlock({ streamId, endStream, dependsOn }, frame.fragment);
  }

  #onBlock(head: PendingBlock, octets: Uint8Array): void {
    // Decoded before anything else is looked at: also the blocks of streams
    // that are gone change the table (§4.3).
    const block = this.#decodeBlock(octets);
    const { streamId, endStream } = head;
    const stream = this.#host.streams.get(streamId);
    if (stream === undefined) return this.#onAbsentHeaders(head, block);
    checkDependency(head);
    if (block.tooLarge) throw tooLarge(streamId, block.listOctets);
    stream.receiveHeaders(block.fields, endStream);
  }

  #decodeBlock(octets: Uint8Array): HeaderBlock {
    try {
      return this.#hpack.decode(octets);
    } catch (error) {
      if (!(error instanceof HpackError)) throw error;
      throw new WireError(ErrorCode.COMPRESSION_ERROR, "4.3", error.message);
    }
  }

  #onAbsentHeaders(head: PendingBlock, block: HeaderBlock): void {
    const { streamId } = head;
    const { streams, role } = this.#host;
    if (streams.absent(streamId) === "idle") {
      if (role === "client" || streams.isLocal(streamId)) {
        throw idleError("HEADERS", streamId);
      }
      return this.#openStream(head, block);
    }
    if (this.#isIgnored(streamId)) return;
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
    const { streams } = this.#host;
    streams.lastPeerId = streamId;
    if (streamId > this.#host.peerIdMax()) {
      // Sent before our GOAWAY arrived; the client will try elsewhere (§6.8).
      return streams.closed.remember(streamId, "ignored");
    }
    // From here on the stream exists, so that a refusal is an RST_STREAM, and
    // what else comes on it is ignored.
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
    if (block.tooLarge) throw tooLarge(streamId, block.listOctets);
    const check = checkSection("request", block.fields);
    if (!check.ok) {
      throw protocolError(
        "8.1.1",
        `Cannot accept stream ${streamId}: ${check.problem}`,
        streamId,
      );
    }
    this.#host.onRequest(streamId, block.fields, endStream, check.facts);
  }

  // --- §6.3 PRIORITY ---------------------------------------------------------

  #onPriority(streamId: number, dependsOn: number): void {
    checkDependency({ streamId, dependsOn, endStream: false });
    this.#countIdle(); // Deprecated and without effect (§5.3.2).
  }

  // --- §6.4 RST_STREAM -------------------------------------------------------

  #onRstStream({ streamId, errorCode }: RstStreamFrame): void {
    const { streams, guard } = this.#host;
    const stream = streams.get(streamId);
    if (stream === undefined) {
      if (streams.absent(streamId) === "idle") {
        throw idleError("RST_STREAM", streamId);
      }
      return this.#countIdle();
    }
    // CVE-2023-44487: work was begun for it and thrown away.
    const isWasted = !streams.isLocal(streamId) && !stream.isAnswered;
    if (isWasted) guard.count("resets", this.#host.nowMs());
    stream.receiveReset(
      errorCode,
      `the peer reset the stream: ${errorCodeName(errorCode)}`,
    );
  }

  // --- §6.5 SETTINGS, §6.7 PING ----------------------------------------------

  #onSettings(ack: boolean, settings: readonly Setting[]): void {
    if (ack) return this.#host.onSettingsAck();
    this.#host.guard.count("settings", this.#host.nowMs());
    this.#host.onSettings(settings);
  }

  #onPing({ ack, opaque }: PingFrame): void {
    if (ack) return this.#host.onPingAck(opaque);
    this.#host.guard.count("pings", this.#host.nowMs());
    this.#host.sending.writer.ping(true, opaque);
  }

  // --- §6.9 WINDOW_UPDATE ----------------------------------------------------

  #onWindowUpdate({ streamId, increment }: WindowUpdateFrame): void {
    const { streams, sending, guard } = this.#host;
    if (increment < TINY_INCREMENT_OCTETS) {
      guard.count("tinyUpdates", this.#host.nowMs());
    }
    if (streamId === 0) {
      if (!sending.window.adjust(increment)) throw overflow(0, increment);
      return;
    }
    const stream = streams.get(streamId);
    if (stream !== undefined) {
      if (!stream.adjustSendWindow(increment)) {
        throw overflow(streamId, increment);
      }
      return;
    }
    if (streams.absent(streamId) === "idle") {
      throw idleError("WINDOW_UPDATE", streamId);
    }
    this.#countIdle(); // It may have been under way (§5.1).
  }
}

/**
 * RFC 7540 §5.3.1, of which RFC 9113 only kept the field: a stream that
 * depends on itself shows a broken peer.
 */
function checkDependency({ streamId, dependsOn }: PendingBlock): void {
  if (dependsOn !== streamId) return;
  throw protocolError(
    "5.3.2",
    `Cannot accept a priority: stream ${streamId} depends on itself`,
    streamId,
  );
}

function protocolError(
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

function idleError(type: string, streamId: number): WireError {
  return protocolError(
    "5.1",
    `Cannot accept ${type} on stream ${streamId}: it is idle`,
  );
}

function tooLarge(streamId: number, listOctets: number): WireError {
  return new WireError(
    ErrorCode.ENHANCE_YOUR_CALM,
    "10.5.1",
    `Cannot accept stream ${streamId}: its header list has ${listOctets} octets`,
    { scope: "stream", streamId },
  );
}

function overflow(streamId: number, increment: number): WireError {
  return new WireError(
    ErrorCode.FLOW_CONTROL_ERROR,
    "6.9.1",
    `Cannot apply WINDOW_UPDATE of ${increment}: the window would pass 2^31-1`,
    streamId === 0 ? { scope: "connection" } : { scope: "stream", streamId },
  );
}
