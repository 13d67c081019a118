/**
 * What each frame of the peer's means (RFC 9113 §6), in the order in which
 * frames come: the receiving half of the engine.
 *
 * It finds the stream and checks what no single stream can know (order of
 * frames, ids, the connection's window, abuse), then hands on; header blocks
 * have a file of their own, `header_receiver.ts`. Errors of the
 * peer's are thrown as `WireError`, caught here in one place, and given to the
 * host; nothing a peer sends gets out of `receive`.
 *
 * @module
 */

import type {
  DataFrame,
  Frame,
  PingFrame,
  RstStreamFrame,
  Setting,
  WindowUpdateFrame,
} from "../frames/frame.ts";
import { FrameDecoder } from "../frames/frame_decoder.ts";
import { ErrorCode, errorCodeName, WireError } from "../frames/wire_error.ts";
import {
  type AbuseLimits,
  ExcessError,
  SETTINGS_ENTRIES_MAX,
  TINY_INCREMENT_BYTES,
} from "./abuse_limits.ts";
import type { EngineStream } from "./engine_stream.ts";
import {
  checkDependency,
  idleError,
  overflow,
  protocolError,
} from "./frame_errors.ts";
import { HeaderReceiver } from "./header_receiver.ts";
import type { ReceiverHost } from "./stream_host.ts";
import type { LocalSettings } from "./settings.ts";
import { CLIENT_PREFACE } from "./frame_writer.ts";

export class FrameReceiver {
  readonly #decoder: FrameDecoder;
  readonly #headers: HeaderReceiver;
  readonly #preface: PrefaceMatcher | undefined;
  #hasSettings = false;
  /**
   * Receives the pieces of the running DATA frame; undefined: they are dropped.
   */
  #dataStream: EngineStream | undefined;

  constructor(
    private readonly host: ReceiverHost,
    settings: LocalSettings,
    limits: AbuseLimits,
  ) {
    this.#decoder = new FrameDecoder(settings.maxFrameSize);
    this.#headers = new HeaderReceiver(host, settings, limits);
    this.#preface = host.role === "server" ? new PrefaceMatcher() : undefined;
  }

  /** True when the peer's bytes may end here without cutting a frame. */
  get isBetweenFrames(): boolean {
    return this.#decoder.isBetweenFrames && this.#headers.pending === undefined;
  }

  /** When {@linkcode check} is due. */
  get nextDeadlineMs(): number {
    return this.#headers.nextDeadlineMs;
  }

  /** @returns What is wrong when something was begun and is overdue. */
  check(nowMs: number): WireError | undefined {
    return this.#headers.check(nowMs);
  }

  /** The connection is over. */
  drop(): void {
    this.#headers.drop();
  }

  /** Takes everything out of `chunk`. */
  receive(chunk: Uint8Array): void {
    const { guard, sending } = this.host;
    let isPushed = false;
    while (!this.host.isClosed()) {
      try {
        if (!isPushed) {
          isPushed = true;
          const skipped = this.#preface?.match(chunk) ?? 0;
          this.#decoder.push(skipped === 0 ? chunk : chunk.subarray(skipped));
        }
        const frame = this.#decoder.next();
        if (frame === undefined) return;
        this.#dispatch(frame);
        guard.checkControlBytes(sending.controlBytes);
      } catch (error) {
        if (!(error instanceof WireError)) throw error;
        this.#refuse(error);
      }
    }
  }

  /** The one place that decides how far an error of the peer's reaches. */
  #refuse(error: WireError): void {
    const { blast } = error;
    const { streams, sending } = this.host;
    if (blast.scope === "connection") return this.host.onError(error);
    try {
      // CVE-2025-8671: provoked resets get round the limit of streams too.
      this.#countReset();
      this.host.guard.count("streamErrors", this.host.nowMs());
    } catch (calm) {
      if (!(calm instanceof WireError)) throw calm;
      return this.host.onError(calm);
    }
    const { streamId } = blast;
    const stream = streams.get(streamId);
    if (stream !== undefined) return stream.fail(error.code, error.message);
    // RST_STREAM must not be sent for an idle stream (§6.4).
    if (streams.absent(streamId) === "idle") return this.host.onError(error);
    sending.writer.rstStream(streamId, error.code);
  }

  #dispatch(frame: Frame): void {
    if (!this.#hasSettings) this.#checkFirst(frame);
    const pending = this.#headers.pending;
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
        return this.#headers.onHeaders(frame);
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
        this.#countIdle(); // One is enough, or two.
        return this.host.onGoaway(frame);
      case "WINDOW_UPDATE":
        return this.#onWindowUpdate(frame);
      case "CONTINUATION":
        return this.#headers.onContinuation(frame);
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
    this.host.guard.count("idleFrames", this.host.nowMs());
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

  #chargeConnection(frame: DataFrame): void {
    const { receiving, guard } = this.host;
    receiving.charge(frame);
    if (frame.flowBytes > frame.paddingBytes) {
      guard.refund("emptyData");
      guard.refund("pings");
    } else if (!frame.endStream) {
      guard.count("emptyData", this.host.nowMs());
    }
  }

  #findDataStream(frame: DataFrame): EngineStream | undefined {
    const { streamId, flowBytes, paddingBytes } = frame;
    const { streams } = this.host;
    const stream = streams.get(streamId);
    if (stream !== undefined) {
      stream.receiveDataStart(flowBytes, paddingBytes);
      return stream;
    }
    // Not counted: it has cost the peer its window, and empty ones are. After
    // our reset of an upload there may be a whole window of it under way.
    if (streams.closed.isUnderWay(streamId)) {
      if (streams.closed.takeLate(streamId, flowBytes)) return undefined;
      throw new WireError(
        ErrorCode.FLOW_CONTROL_ERROR,
        "6.9.1",
        `Cannot accept DATA on stream ${streamId}: more came since its reset ` +
          "than its window allowed",
      );
    }
    if (streams.absent(streamId) === "idle") throw idleError("DATA", streamId);
    throw new WireError(
      ErrorCode.STREAM_CLOSED,
      "5.1",
      `Cannot accept DATA on stream ${streamId}: it is closed`,
      { scope: "stream", streamId },
    );
  }

  // --- §6.3 PRIORITY ---------------------------------------------------------

  #onPriority(streamId: number, dependsOn: number): void {
    checkDependency({ streamId, dependsOn, endStream: false });
    this.#countIdle(); // Deprecated and without effect (§5.3.2).
  }

  // --- §6.4 RST_STREAM -------------------------------------------------------

  #onRstStream({ streamId, errorCode }: RstStreamFrame): void {
    const { streams } = this.host;
    const stream = streams.get(streamId);
    if (stream === undefined) {
      if (streams.absent(streamId) === "idle") {
        throw idleError("RST_STREAM", streamId);
      }
      return this.#countIdle();
    }
    // CVE-2023-44487: work was begun for it and thrown away.
    const isWasted = !streams.isLocal(streamId) && !stream.isAnswered;
    if (isWasted) this.#countReset();
    stream.receiveReset(
      errorCode,
      `the peer reset the stream: ${errorCodeName(errorCode)}`,
    );
  }

  #countReset(): void {
    const { guard, shared } = this.host;
    guard.count("resets", this.host.nowMs());
    if (!shared.takeReset()) throw resetsElsewhere();
  }

  // --- §6.5 SETTINGS, §6.7 PING ----------------------------------------------

  #onSettings(ack: boolean, settings: readonly Setting[]): void {
    if (ack) return this.host.onSettingsAck();
    this.host.guard.count("settings", this.host.nowMs());
    if (settings.length > SETTINGS_ENTRIES_MAX) {
      throw new ExcessError(
        "settings",
        `SETTINGS with ${settings.length} entries, wanted at most ` +
          `${SETTINGS_ENTRIES_MAX}`,
      );
    }
    this.host.onSettings(settings);
  }

  #onPing({ ack, opaque }: PingFrame): void {
    if (ack) return this.host.onPingAck(opaque);
    this.host.guard.count("pings", this.host.nowMs());
    this.host.sending.writer.ping(true, opaque);
    this.host.onPing();
  }

  // --- §6.9 WINDOW_UPDATE ----------------------------------------------------

  #onWindowUpdate({ streamId, increment }: WindowUpdateFrame): void {
    const { streams, sending, guard, bulk } = this.host;
    if (increment < TINY_INCREMENT_BYTES) {
      guard.count("tinyUpdates", this.host.nowMs());
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
      bulk.moved(stream, increment, this.host.nowMs());
      return;
    }
    if (streams.absent(streamId) === "idle") {
      throw idleError("WINDOW_UPDATE", streamId);
    }
    this.#countIdle(); // It may have been under way (§5.1).
  }
}

function resetsElsewhere(): ExcessError {
  return new ExcessError("shared", "too many resets on its connections");
}

// Recognises the bytes with which every HTTP/2 client begins
// (RFC 9113 §3.4), however they are cut.

/** How much of a peer's first bytes is shown. */
const SHOWN_BYTES = 24;

export class PrefaceMatcher {
  #matched = 0;

  /**
   * Matches the next bytes; all of a chunk is handed in.
   *
   * @returns How many bytes of `chunk` belong to the preface.
   * @throws {WireError} At the first byte that differs.
   */
  match(chunk: Uint8Array): number {
    const wanted = CLIENT_PREFACE.length - this.#matched;
    const count = Math.min(wanted, chunk.length);
    for (let index = 0; index < count; index++) {
      if (chunk[index] === CLIENT_PREFACE[this.#matched + index]) continue;
      const seen = new TextDecoder().decode(chunk.subarray(0, SHOWN_BYTES));
      throw new WireError(
        ErrorCode.PROTOCOL_ERROR,
        "3.4",
        `Cannot accept the connection preface: saw ${
          JSON.stringify(seen)
        }, wanted HTTP/2`,
      );
    }
    this.#matched += count;
    return count;
  }
}
