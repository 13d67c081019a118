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

import type { GoawayFrame, Setting } from "../frames/frame.ts";
import {
  ErrorCode,
  errorCodeName,
  type WireError,
} from "../frames/wire_error.ts";
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
import { FrameReceiver } from "./frame_receiver.ts";
import { goawaySentence, GoawayState } from "./goaway_state.ts";
import type { SectionFacts } from "./header_sections.ts";
import { Liveness } from "./liveness.ts";
import { ReceiveBudget } from "./receive_budget.ts";
import type { ReceiverHost } from "./receiver_host.ts";
import { ReceivingSide } from "./receiving_side.ts";
import { SendingSide } from "./sending_side.ts";
import {
  completeLocalSettings,
  type PeerSettings,
  problemOfHeaderList,
} from "./settings.ts";
import { SettingsExchange } from "./settings_exchange.ts";
import type { Stream, StreamEvents, StreamReset } from "./stream.ts";
import type { StreamHost } from "./stream_host.ts";
import { StreamTable } from "./stream_table.ts";

/** How long a drain waits for its PING before it says which stream is last. */
export const DRAIN_ROUND_TRIP_MS = 5_000;

/** How long the last octets of a connection may take to be written. */
export const CLOSE_LINGER_MS = 5_000;

/**
 * WINDOW_UPDATE, RST_STREAM and the like that may honestly cross the end of a
 * stream, for each end of one.
 */
const IDLE_FRAMES_PER_STREAM = 2;

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
  readonly #streams: StreamTable;
  readonly #guard: AbuseGuard;
  readonly #sending: SendingSide;
  readonly #receiving: ReceivingSide;
  readonly #settings: SettingsExchange;
  readonly #goaway: GoawayState;
  readonly #liveness: Liveness;
  readonly #receiver: FrameReceiver;
  readonly #streamHost: StreamHost;
  #phase: Phase = "new";
  #nowMs: number;
  #isReceiving = false;
  #drainDeadlineMs = Infinity;
  #lingerDeadlineMs = Infinity;
  #drainReason = "";
  #isExhausted = false;

  constructor(options: ConnectionOptions) {
    const { role, clock, events } = options;
    this.#role = role;
    this.#clock = clock;
    this.#events = events;
    this.#nowMs = clock.now();
    const local = completeLocalSettings(options.settings);
    const limits = { ...CONNECTION_LIMITS_DEFAULT, ...options.limits };
    const guard = this.#guard = new AbuseGuard(limits, this.#nowMs);
    const streams = this.#streams = new StreamTable(
      role,
      options.firstStreamId,
    );
    const { writer } = this.#sending = new SendingSide(guard);
    const liveness = this.#liveness = new Liveness(
      writer,
      clock,
      options.keepalive,
    );
    const budget = options.receiveBudget ?? new ReceiveBudget();
    this.#receiving = new ReceivingSide(
      { local, writer, streams, liveness, clock, budget },
    );
    this.#settings = new SettingsExchange(
      { role, local, writer, streams, clock },
    );
    this.#goaway = new GoawayState(writer, streams);
    this.#streamHost = this.#makeStreamHost();
    this.#receiver = new FrameReceiver(this.#makeReceiverHost(), local, limits);
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
    return this.#settings.peer;
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
    if (this.#role === "client") this.#sending.writer.preface();
    this.#settings.start(this.#nowMs);
    this.#receiving.start();
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
      code: this.#goaway.peer?.code ?? ErrorCode.NO_ERROR,
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
      this.#settings.nextDeadlineMs,
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
    const overdue = this.#settings.check(nowMs);
    if (overdue !== undefined) return this.#fail(overdue);
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
    const reason = this.#unusableReason ?? this.#problemOfHeaders(fields);
    if (reason !== undefined) throw new ConnectionUnavailableError(reason);
    const stream = new EngineStream(this.#streamHost);
    stream.prepare(fields, endStream, events);
    this.#streams.addPending(stream);
    this.#openPending();
    return stream;
  }

  get #unusableReason(): string | undefined {
    if (this.#phase !== "running") return UNUSABLE_PHASES[this.#phase];
    if (this.#goaway.peer !== undefined) {
      return "the peer is closing the connection (GOAWAY)";
    }
    return this.#streams.hasIds ? undefined : "all stream ids are used up";
  }

  #problemOfHeaders(fields: readonly HeaderField[]): string | undefined {
    return problemOfHeaderList(fields, this.peerSettings.maxHeaderListSize);
  }

  #openPending(): void {
    while (this.#phase === "running" && this.#goaway.peer === undefined) {
      const { maxConcurrentStreams } = this.peerSettings;
      const next = this.#streams.promote(maxConcurrentStreams);
      if (next === undefined) break;
      next.stream.activate(next.streamId);
      this.#settings.streamsChanged();
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
    this.#settings.streamsChanged();
    stream.setEvents(this.#events.onStream(stream));
    if (!stream.isClosed) stream.receiveHeaders(fields, endStream, facts);
  }

  #onStreamClosed(stream: EngineStream, how: ClosedHow): void {
    this.#receiving.closed(stream);
    if (stream.id === 0) this.#streams.removePending(stream);
    else this.#streams.remove(stream.id, how);
    // What is under way when a stream closes is honest.
    this.#guard.refund("idleFrames", IDLE_FRAMES_PER_STREAM);
  }

  #onStreamOver(): void {
    if (this.#phase === "closed") return;
    this.#settings.streamsChanged();
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
    this.#goaway.announce(reason);
    this.#drainDeadlineMs = this.#nowMs + DRAIN_ROUND_TRIP_MS;
    this.#liveness.ping("drain");
  }

  /** Ends at once: GOAWAY with `code`, all streams are lost. */
  abort(code: number, reason: string): void {
    if (this.#phase === "closed") return;
    this.#goaway.send(code, reason);
    this.#end({ reason, code, by: "local" });
  }

  /** The second step of a drain: what came until now is the last. */
  #finishDrain(): void {
    this.#drainDeadlineMs = Infinity;
    if (this.#goaway.isFinal || this.#phase !== "draining") return;
    this.#goaway.sendFinal(this.#drainReason);
    this.#refuse(this.#streams.allPending(), this.#drainReason);
    this.#endIfIdle();
  }

  #endIfIdle(): void {
    if (this.#phase === "closed" || this.openStreams > 0) return;
    const { peer, isFinal } = this.#goaway;
    if (this.#phase === "draining") {
      if (!isFinal) return;
      this.#end({ reason: this.#drainReason, code: 0, by: "local" });
    } else if (this.#role === "client" && peer !== undefined) {
      // A client's own requests are all that keeps such a connection up; a
      // server leaves the closing to the client, which may still have some.
      const { code } = peer;
      this.#goaway.send(ErrorCode.NO_ERROR, "");
      this.#end({
        reason: `the peer closed the connection: ${errorCodeName(code)}`,
        code,
        by: "peer",
      });
    }
  }

  /** The peer broke a rule that costs the connection (§5.4.1). */
  #fail(error: WireError): void {
    if (this.#phase === "closed") return;
    this.#goaway.send(error.code, error.message);
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
    this.#refuse(this.#streams.allPending(), reason);
    this.#receiving.end();
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
    this.#settings.onSettings(settings);
    this.#openPending();
    this.#events.onPeerSettings?.();
  }

  #onSettingsAck(): void {
    if (!this.#settings.onAck()) {
      return this.#guard.count("idleFrames", this.#nowMs);
    }
    // The number of streams may have changed while this was under way.
    this.#settings.streamsChanged();
  }

  #onPingAck(opaque: Uint8Array): void {
    const purpose = this.#liveness.onPingAck(opaque, this.#nowMs);
    if (purpose === undefined) {
      return this.#guard.count("idleFrames", this.#nowMs);
    }
    if (purpose === "probe") this.#receiving.probeAnswered(this.#nowMs);
    if (purpose === "drain") this.#finishDrain();
  }

  #onGoaway(frame: GoawayFrame): void {
    const info = this.#goaway.receive(frame);
    const refused = this.#streams.all().filter(({ id }) =>
      this.#streams.isLocal(id) && id > info.lastStreamId
    );
    this.#refuse(
      [...this.#streams.allPending(), ...refused],
      goawaySentence(info),
    );
    // A handler of those may have ended the connection.
    if (this.#isClosed) return;
    this.#events.onGoaway?.(info);
    this.#endIfIdle();
  }

  get #isClosed(): boolean {
    return this.#phase === "closed";
  }

  // --- What streams and the receiver need of us ------------------------------

  #makeStreamHost(): StreamHost {
    return {
      sending: this.#sending,
      receiving: this.#receiving,
      startWindow: (isOwn) => {
        const { ofOwnStream, ofPeerStream } = this.#settings.startWindow;
        return isOwn ? ofOwnStream : ofPeerStream;
      },
      peerStartWindow: () => this.peerSettings.initialWindowSize,
      problemOfHeaders: (fields) => this.#problemOfHeaders(fields),
      onAnswered: () => this.#guard.refund("resets"),
      onStreamClosed: (stream, how) => this.#onStreamClosed(stream, how),
      onStreamOver: () => this.#onStreamOver(),
    };
  }

  #makeReceiverHost(): ReceiverHost {
    return {
      role: this.#role,
      streams: this.#streams,
      sending: this.#sending,
      receiving: this.#receiving,
      guard: this.#guard,
      isClosed: () => this.#isClosed,
      peerIdMax: () => this.#goaway.peerIdMax,
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
