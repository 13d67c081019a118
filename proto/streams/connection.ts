/**
 * The HTTP/2 engine: one connection, either role, without I/O (RFC 9113).
 *
 * Octets of the peer go into `receive`, octets for the peer come out of
 * `takeOutput`; everything else is calls and events. It reads no clock but the
 * one it is given, sets no timer (`nextDeadlineMs` says when `onDeadline` is
 * due), makes no promise and never throws for anything a peer sends.
 *
 * ```
 *   driver ──receive──► FrameReceiver ──► EngineStream ──events──► layer above
 *   driver ◄─takeOutput── Output ◄── FrameWriter ◄── EngineStream ◄──calls──┘
 * ```
 *
 * Handlers may call anything from inside an event, except `receive`. The order
 * of a driver's loop: `takeOutput`, write, `outputWritten`, and again, until
 * `takeOutput` gives nothing; then wait for the output listener.
 *
 * Reading order: here for how a connection lives and ends, `frame_receiver.ts`
 * for what each frame means, `engine_stream.ts` for the life of one stream.
 *
 * @module
 */

import { type GoawayFrame, type Setting, UINT31_MAX } from "../frames/frame.ts";
import { ErrorCode, errorCodeName, WireError } from "../frames/wire_error.ts";
import type { HeaderField } from "../hpack/header_field.ts";
import type { Clock } from "../sync/clock.ts";
import { AbuseGuard, CONNECTION_LIMITS_DEFAULT } from "./abuse_limits.ts";
import type { ClosedHow } from "./closed_streams.ts";
import {
  type ConnectionEnd,
  type ConnectionEvents,
  type ConnectionOptions,
  ConnectionUnavailableError,
  type Role,
} from "./connection_events.ts";
import { EngineStream } from "./engine_stream.ts";
import { ReceiveWindow, WINDOW_OCTETS_DEFAULT } from "./flow_window.ts";
import { FrameReceiver, type ReceiverHost } from "./frame_receiver.ts";
import type { SectionFacts } from "./header_sections.ts";
import { Liveness } from "./liveness.ts";
import { SendingSide } from "./sending_side.ts";
import {
  applySettings,
  completeLocalSettings,
  type LocalSettings,
  PEER_SETTINGS_DEFAULT,
  type PeerSettings,
  settingsToAnnounce,
} from "./settings.ts";
import type { Stream, StreamEvents, StreamReset } from "./stream.ts";
import type { StreamHost } from "./stream_host.ts";
import { StreamTable } from "./stream_table.ts";
import { WindowTuner } from "./window_tuner.ts";

/** The peer must acknowledge our SETTINGS within this (§6.5.3). */
export const SETTINGS_ACK_TIMEOUT_MS = 10_000;

/** How long a drain waits for its PING before it says which stream is last. */
export const DRAIN_ROUND_TRIP_MS = 5_000;

/** How long the last octets of a connection may take to be written. */
export const CLOSE_LINGER_MS = 5_000;

/** Where a connection is in its life. `closed` may still have output. */
type Phase = "new" | "running" | "draining" | "closed";

/** Why a connection that is not running opens no stream. */
const UNUSABLE_PHASES: Readonly<Record<Exclude<Phase, "running">, string>> = {
  new: "the connection was not started",
  draining: "we are closing the connection",
  closed: "the connection is closed",
};

/** See the module description. */
export class Connection {
  readonly #role: Role;
  readonly #clock: Clock;
  readonly #events: ConnectionEvents;
  readonly #local: LocalSettings;
  readonly #sending: SendingSide;
  readonly #receiver: FrameReceiver;
  readonly #streams: StreamTable;
  readonly #guard: AbuseGuard;
  readonly #receiveWindow = new ReceiveWindow(WINDOW_OCTETS_DEFAULT);
  readonly #liveness: Liveness;
  readonly #tuner: WindowTuner;
  readonly #streamHost: StreamHost;
  #peer: PeerSettings = PEER_SETTINGS_DEFAULT;
  #hasPeerSettings = false;
  #phase: Phase = "new";
  #nowMs: number;
  #isReceiving = false;
  #settingsDeadlineMs = Infinity;
  #drainDeadlineMs = Infinity;
  #lingerDeadlineMs = Infinity;
  /** The last stream of the peer's that we take; set by our final GOAWAY. */
  #peerIdMax = Infinity;
  #drainReason = "";
  #peerGoaway: GoawayFrame | undefined;
  #isExhausted = false;

  constructor(options: ConnectionOptions) {
    const { role, clock, events } = options;
    this.#role = role;
    this.#clock = clock;
    this.#events = events;
    this.#local = completeLocalSettings(options.settings);
    this.#nowMs = clock.now();
    const limits = { ...CONNECTION_LIMITS_DEFAULT, ...options.limits };
    this.#guard = new AbuseGuard(limits, this.#nowMs);
    this.#streams = new StreamTable(role, options.firstStreamId);
    this.#sending = new SendingSide(this.#guard);
    const { writer } = this.#sending;
    this.#liveness = new Liveness(writer, clock, options.keepalive);
    this.#tuner = new WindowTuner(
      this.#liveness.rtt,
      this.#local.streamWindowMax,
      () => this.#liveness.ping("probe"),
    );
    this.#streamHost = this.#makeStreamHost();
    this.#receiver = new FrameReceiver(
      this.#makeReceiverHost(),
      this.#local,
      limits,
    );
  }

  // --- What is known ---------------------------------------------------------

  /** When the peer's last octets came, on the connection's clock. */
  get lastHeardMs(): number {
    return this.#liveness.lastHeardMs;
  }

  /** Smoothed round trip time; `undefined` until a PING was answered. */
  get rttMs(): number | undefined {
    return this.#liveness.rtt.smoothedMs;
  }

  /** Streams that are open or wait to be opened. */
  get openStreams(): number {
    return this.#streams.size + this.#streams.pending;
  }

  /** What the peer announced, or the defaults until it does. */
  get peerSettings(): PeerSettings {
    return this.#peer;
  }

  /** False when new streams should be opened elsewhere. */
  get isUsable(): boolean {
    return this.#unusableReason === undefined && this.#streams.hasIdsToSpare;
  }

  /**
   * All output is written and there will be no more: close the transport. Also
   * true with a write in flight once there is no hope for it (the road broke,
   * the peer is silent or does not read): close without waiting for it then.
   */
  get isFinished(): boolean {
    return this.#phase === "closed" && this.#sending.isEmpty;
  }

  // --- Octets in and out -----------------------------------------------------

  /** Sends the preface and our SETTINGS. Call once, before anything else. */
  start(): void {
    if (this.#phase !== "new") {
      throw new TypeError(`Cannot start a connection that is ${this.#phase}`);
    }
    this.#phase = "running";
    this.#nowMs = this.#liveness.lastHeardMs = this.#clock.now();
    const { writer } = this.#sending;
    if (this.#role === "client") writer.preface();
    writer.settings(settingsToAnnounce(this.#local, this.#role));
    this.#settingsDeadlineMs = this.#nowMs + SETTINGS_ACK_TIMEOUT_MS;
    this.#receiveWindow.grow(this.#local.connectionWindow);
    const increment = this.#receiveWindow.takeAll();
    if (increment > 0) writer.windowUpdate(0, increment);
  }

  /**
   * Sets who is told that there is output, once until `takeOutput` has given
   * nothing. The listener must not call back before it returns: it schedules.
   */
  setOutputListener(listener: () => void): void {
    this.#sending.setListener(listener);
  }

  /** Takes octets of the peer's; `chunk` is only used during the call. */
  receive(chunk: Uint8Array): void {
    if (this.#phase === "closed" || chunk.length === 0) return;
    if (this.#isReceiving) {
      throw new TypeError("Cannot receive inside an event of this connection");
    }
    this.#nowMs = this.#liveness.lastHeardMs = this.#clock.now();
    this.#isReceiving = true;
    try {
      this.#receiver.receive(chunk);
    } finally {
      this.#isReceiving = false;
    }
    this.#sending.scheduler.run();
  }

  /** The peer closed its sending side: nothing more can come from it. */
  receiveEnd(): void {
    if (this.#phase === "closed") return;
    const isClean = this.openStreams === 0 && this.#receiver.isBetweenFrames;
    const reason = "the peer closed the connection";
    this.#end({
      reason,
      code: this.#peerGoaway?.errorCode ?? ErrorCode.NO_ERROR,
      by: "peer",
      ...(isClean ? {} : {
        error: new Error(
          `Cannot go on: ${reason} with ${this.openStreams} streams open`,
        ),
      }),
    });
  }

  /** The transport is gone, both ways. */
  transportClosed(error?: Error): void {
    if (this.#phase !== "closed") {
      this.#end({
        reason: error?.message ?? "the transport was closed",
        code: ErrorCode.NO_ERROR,
        by: "transport",
        ...(error && { error }),
      });
    }
    this.#abandonOutput();
  }

  /**
   * The next octets to write, at most 128 KiB as a rule, or `undefined` when
   * there are none or the last were not written yet. Valid until
   * `outputWritten`.
   */
  takeOutput(): Uint8Array | undefined {
    return this.#sending.take();
  }

  /** What `takeOutput` gave is written. */
  outputWritten(): void {
    this.#sending.written();
  }

  // --- Time ------------------------------------------------------------------

  /** When `onDeadline` is due, on the connection's clock, or `Infinity`. */
  get nextDeadlineMs(): number {
    if (this.#phase === "closed") return this.#lingerDeadlineMs;
    return Math.min(
      this.#settingsDeadlineMs,
      this.#drainDeadlineMs,
      this.#liveness.nextDeadlineMs,
    );
  }

  /** Does what is due. Harmless when it is early. */
  onDeadline(): void {
    const nowMs = this.#nowMs = this.#clock.now();
    if (this.#phase === "closed") {
      if (nowMs < this.#lingerDeadlineMs) return;
      return this.#abandonOutput();
    }
    if (nowMs >= this.#drainDeadlineMs) this.#finishDrain();
    if (nowMs >= this.#settingsDeadlineMs) {
      return this.#fail(
        new WireError(
          ErrorCode.SETTINGS_TIMEOUT,
          "6.5.3",
          `Cannot go on: SETTINGS were not acknowledged for ${SETTINGS_ACK_TIMEOUT_MS} ms`,
        ),
      );
    }
    const lost = this.#liveness.check(nowMs);
    if (lost !== undefined) this.transportClosed(lost);
  }

  #abandonOutput(): void {
    this.#lingerDeadlineMs = Infinity;
    this.#sending.abandon();
  }

  // --- Streams ---------------------------------------------------------------

  /**
   * Client role: sends a request. Above the peer's MAX_CONCURRENT_STREAMS it
   * waits, with `id` 0 and `room` 0, until a stream has ended.
   *
   * @throws {ConnectionUnavailableError} When no stream can be opened any more.
   */
  openStream(
    fields: readonly HeaderField[],
    endStream: boolean,
    events: StreamEvents,
  ): Stream {
    if (this.#role !== "client") {
      throw new TypeError("Cannot open a stream as a server");
    }
    const reason = this.#unusableReason;
    if (reason !== undefined) throw new ConnectionUnavailableError(reason);
    const stream = new EngineStream(this.#streamHost);
    stream.prepare(fields, endStream, events);
    this.#streams.addPending(stream);
    this.#openPending();
    return stream;
  }

  get #unusableReason(): string | undefined {
    if (this.#phase !== "running") return UNUSABLE_PHASES[this.#phase];
    if (this.#peerGoaway !== undefined) {
      return "the peer is closing the connection (GOAWAY)";
    }
    return this.#streams.hasIds ? undefined : "all stream ids are used up";
  }

  #openPending(): void {
    while (this.#phase === "running" && this.#peerGoaway === undefined) {
      const next = this.#streams.promote(this.#peer.maxConcurrentStreams);
      if (next === undefined) break;
      next.stream.activate(next.streamId);
    }
    if (this.#isExhausted || this.#streams.hasIdsToSpare) return;
    this.#isExhausted = true;
    this.#events.onExhausted?.();
  }

  #onRequest(
    streamId: number,
    fields: readonly HeaderField[],
    endStream: boolean,
    facts: SectionFacts,
  ): void {
    const stream = new EngineStream(this.#streamHost);
    stream.accept(streamId);
    this.#streams.addPeer(stream);
    stream.setEvents(this.#events.onStream(stream));
    if (!stream.isClosed) stream.receiveHeaders(fields, endStream, facts);
  }

  #onStreamClosed(stream: EngineStream, how: ClosedHow): void {
    this.#tuner.onClosed(stream, this.#local.initialWindowSize);
    if (stream.id === 0) this.#streams.removePending(stream);
    else this.#streams.remove(stream.id, how);
    if (this.#phase === "closed") return;
    this.#openPending();
    this.#endIfIdle();
  }

  // --- Ends ------------------------------------------------------------------

  /**
   * Ends gracefully: no new streams, and when the last one has ended, so has
   * the connection (§6.8). A server first announces it, so that requests that
   * are under way are still served.
   *
   * @param reason For people, also the peer's.
   */
  shutdown(reason: string): void {
    if (this.#phase !== "running") return;
    this.#phase = "draining";
    this.#drainReason = reason;
    this.#nowMs = this.#clock.now();
    if (this.#role === "client") return this.#finishDrain();
    this.#sending.writer.goaway(UINT31_MAX, ErrorCode.NO_ERROR, reason);
    this.#drainDeadlineMs = this.#nowMs + DRAIN_ROUND_TRIP_MS;
    this.#liveness.ping("drain");
  }

  /** Ends at once: GOAWAY with `code`, all streams are lost. */
  abort(code: number, reason: string): void {
    if (this.#phase === "closed") return;
    this.#goaway(code, reason);
    this.#end({ reason, code, by: "local" });
  }

  /** The second step of a drain: what came until now is the last. */
  #finishDrain(): void {
    this.#drainDeadlineMs = Infinity;
    if (this.#peerIdMax !== Infinity || this.#phase !== "draining") return;
    this.#goaway(ErrorCode.NO_ERROR, this.#drainReason);
    this.#peerIdMax = this.#streams.lastPeerId;
    this.#refuse(this.#streams.takeAllPending(), this.#drainReason);
    this.#endIfIdle();
  }

  #endIfIdle(): void {
    if (this.#phase === "closed" || this.openStreams > 0) return;
    if (this.#phase === "draining") {
      if (this.#peerIdMax === Infinity) return;
      this.#end({ reason: this.#drainReason, code: 0, by: "local" });
    } else if (this.#role === "client" && this.#peerGoaway !== undefined) {
      // A client's own requests are all that keeps such a connection up; a
      // server leaves the closing to the client, which may still have some.
      const { errorCode } = this.#peerGoaway;
      this.#goaway(ErrorCode.NO_ERROR, "");
      this.#end({
        reason: `the peer closed the connection: ${errorCodeName(errorCode)}`,
        code: errorCode,
        by: "peer",
      });
    }
  }

  #goaway(code: number, reason: string): void {
    const lastId = Math.min(this.#streams.lastPeerId, this.#peerIdMax);
    this.#sending.writer.goaway(lastId, code, reason);
  }

  /** The peer broke a rule that costs the connection (§5.4.1). */
  #fail(error: WireError): void {
    if (this.#phase === "closed") return;
    this.#goaway(error.code, error.message);
    this.#end({
      error,
      reason: error.message,
      code: error.code,
      by: "local",
    });
  }

  #end(end: ConnectionEnd): void {
    this.#phase = "closed";
    this.#lingerDeadlineMs = this.#clock.now() + CLOSE_LINGER_MS;
    const { code, reason } = end;
    for (const stream of this.#streams.all()) {
      stream.finish({ by: "lost", code, reason });
    }
    this.#refuse(this.#streams.takeAllPending(), reason);
    this.#sending.announce(); // So that the driver sees that we are finished.
    this.#events.onClosed(end);
  }

  /** Streams that the peer has certainly not processed (§8.7). */
  #refuse(streams: readonly EngineStream[], reason: string): void {
    const code = ErrorCode.REFUSED_STREAM;
    const reset: StreamReset = { by: "refused", code, reason };
    for (const stream of streams) stream.finish(reset);
  }

  // --- Frames that concern the connection ------------------------------------

  #onSettings(settings: readonly Setting[]): void {
    const before = this.#peer;
    // Without a word about it the number of streams is unlimited (§6.5.2).
    const base = this.#hasPeerSettings
      ? before
      : { ...before, maxConcurrentStreams: Infinity };
    const sender = this.#role === "client" ? "server" : "client";
    const peer = applySettings(base, settings, sender);
    this.#peer = peer;
    this.#hasPeerSettings = true;
    this.#sending.writer.setFrameSizeMax(peer.maxFrameSize);
    if (peer.headerTableSize !== before.headerTableSize) {
      this.#sending.writer.setHeaderTableSize(peer.headerTableSize);
    }
    this.#sending.writer.settingsAck();
    const growth = peer.initialWindowSize - before.initialWindowSize;
    for (const stream of growth === 0 ? [] : this.#streams.all()) {
      if (stream.adjustSendWindow(growth)) continue;
      throw new WireError(
        ErrorCode.FLOW_CONTROL_ERROR,
        "6.9.2",
        `Cannot apply SETTINGS: the window of stream ${stream.id} would pass 2^31-1`,
      );
    }
    this.#openPending();
    this.#events.onPeerSettings?.();
  }

  #onSettingsAck(): void {
    if (this.#settingsDeadlineMs === Infinity) {
      return this.#guard.count("idleFrames", this.#nowMs);
    }
    this.#settingsDeadlineMs = Infinity;
  }

  #onPingAck(opaque: Uint8Array): void {
    const purpose = this.#liveness.onPingAck(opaque, this.#nowMs);
    if (purpose === undefined) {
      return this.#guard.count("idleFrames", this.#nowMs);
    }
    if (purpose === "probe") this.#tuner.onProbeAnswer(this.#nowMs);
    if (purpose === "drain") this.#finishDrain();
  }

  #onGoaway(frame: GoawayFrame): void {
    const { errorCode: code, debugData } = frame;
    // It must not grow (§6.8); one that does is not believed.
    const lastStreamId = Math.min(
      frame.lastStreamId,
      this.#peerGoaway?.lastStreamId ?? UINT31_MAX,
    );
    const reason = new TextDecoder().decode(debugData);
    this.#peerGoaway = { ...frame, lastStreamId, debugData: new Uint8Array(0) };
    const said = `the peer said GOAWAY: ${errorCodeName(code)} ${reason}`;
    this.#refuse(this.#streams.takeAllPending(), said);
    this.#refuse(
      this.#streams.all().filter(({ id }) =>
        this.#streams.isLocal(id) && id > lastStreamId
      ),
      said,
    );
    this.#events.onGoaway?.({ lastStreamId, code, reason });
    this.#endIfIdle();
  }

  // --- What streams and the receiver need of us ------------------------------

  #makeStreamHost(): StreamHost {
    return {
      sending: this.#sending,
      startWindow: this.#local.initialWindowSize,
      peerStartWindow: () => this.#peer.initialWindowSize,
      onAnswered: () => this.#guard.refund("resets"),
      onConsumed: (stream, octets) => this.#tuner.onConsumed(stream, octets),
      onHalfUsed: (stream) => this.#tuner.onHalfUsed(stream, this.#clock.now()),
      onStreamClosed: (stream, how) => this.#onStreamClosed(stream, how),
    };
  }

  #makeReceiverHost(): ReceiverHost {
    return {
      role: this.#role,
      streams: this.#streams,
      sending: this.#sending,
      guard: this.#guard,
      receiveWindow: this.#receiveWindow,
      isClosed: () => this.#phase === "closed",
      peerIdMax: () => this.#peerIdMax,
      nowMs: () => this.#nowMs,
      onRequest: (streamId, fields, endStream, facts) =>
        this.#onRequest(streamId, fields, endStream, facts),
      onSettings: (settings) => this.#onSettings(settings),
      onSettingsAck: () => this.#onSettingsAck(),
      onPingAck: (opaque) => this.#onPingAck(opaque),
      onGoaway: (frame) => this.#onGoaway(frame),
      onError: (error) => this.#fail(error),
    };
  }
}
