/**
 * The HTTP/2 engine: one connection, either role, without I/O (RFC 9113).
 *
 * Bytes of the peer go into `receive`, bytes for the peer come out of
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
 * Reading order: here, `connection_life.ts` for how a connection ends,
 * `frame_receiver.ts` for what each frame means, `engine_stream.ts` for the life
 * of one stream; `sending_side.ts` and `receiving_side.ts` for what streams share.
 *
 * @module
 */

import type { GoawayFrame, Setting } from "../frames/frame.ts";
import type { WireError } from "../frames/wire_error.ts";
import type { HeaderField } from "../hpack/header_field.ts";
import type { Clock } from "../sync/clock.ts";
import {
  AbuseGuard,
  CONNECTION_LIMITS_DEFAULT,
  type SharedLimits,
  UNSHARED,
} from "./abuse_limits.ts";
import { BulkSense } from "./bulk_sense.ts";
import { type ClosedHow, StreamTable } from "./stream_table.ts";
import {
  type ConnectionEvents,
  type ConnectionOptions,
  ConnectionUnavailableError,
  type Role,
} from "./connection_events.ts";
import { ConnectionLife } from "./connection_life.ts";
import { EngineStream } from "./engine_stream.ts";
import { FrameReceiver } from "./frame_receiver.ts";
import type { SectionFacts } from "./header_sections.ts";
import type { KeepaliveOptions } from "./keepalive.ts";
import { Liveness } from "./liveness.ts";
import { ReceiveBudget } from "./receive_budget.ts";
import type { ReceiverHost, StreamHost } from "./stream_host.ts";
import { ReceivingSide } from "./receiving_side.ts";
import { SendingSide } from "./sending_side.ts";
import {
  completeLocalSettings,
  type PeerSettings,
  problemOfHeaderList,
} from "./settings.ts";
import { SettingsExchange } from "./settings_exchange.ts";
import type { Stream, StreamEvents } from "./stream.ts";

/**
 * How many WINDOW_UPDATE, RST_STREAM and the like may honestly cross the end of
 * a stream, for each end.
 */
const IDLE_FRAMES_PER_STREAM = 2;

export class Connection {
  readonly #role: Role;
  readonly #clock: Clock;
  readonly #events: ConnectionEvents;
  readonly #streams: StreamTable;
  readonly #guard: AbuseGuard;
  readonly #shared: SharedLimits;
  readonly #bulk = new BulkSense<EngineStream>();
  readonly #sending: SendingSide;
  readonly #receiving: ReceivingSide;
  readonly #settings: SettingsExchange;
  readonly #life: ConnectionLife;
  readonly #liveness: Liveness;
  readonly #receiver: FrameReceiver;
  readonly #streamHost: StreamHost;
  #nowMs: number;
  #isReceiving = false;
  #isExhausted = false;
  #isDoubted = false;

  constructor(options: ConnectionOptions) {
    const { role, clock, events } = options;
    this.#role = role;
    this.#clock = clock;
    this.#events = events;
    this.#nowMs = clock.now();
    const local = completeLocalSettings(options.settings);
    const limits = options.limits === undefined
      ? CONNECTION_LIMITS_DEFAULT
      : { ...CONNECTION_LIMITS_DEFAULT, ...options.limits };
    const guard = this.#guard = new AbuseGuard(limits);
    this.#shared = options.sharedLimits ?? UNSHARED;
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
    const sending = this.#sending;
    const bulk = this.#bulk;
    const receiving = this.#receiving = new ReceivingSide(
      { local, writer, streams, liveness, clock, budget, bulk },
    );
    this.#settings = new SettingsExchange(
      { role, local, writer, streams, clock },
    );
    this.#life = new ConnectionLife(
      {
        ...{ role, clock, events, streams, sending, receiving, liveness },
        dropIncomplete: () => this.#receiver.drop(),
      },
    );
    const host = this.#streamHost = new Connection.#Host(this);
    this.#receiver = new FrameReceiver(host, local, limits);
  }

  // --- What is known ---------------------------------------------------------

  /** When the peer's last bytes came, on the connection's clock. */
  get lastHeardMs(): number {
    return this.#liveness.lastHeardMs;
  }

  /** When a PING was answered last; `-Infinity`: none was. */
  get answeredMs(): number {
    return this.#liveness.answeredMs;
  }

  /** Since when a PING waits for its answer; `undefined`: none does. */
  get askedMs(): number | undefined {
    return this.#liveness.askedMs;
  }

  /** Smoothed round trip time; `undefined` until a PING was answered. */
  get rttMs(): number | undefined {
    return this.#liveness.rtt.smoothedMs;
  }

  /** The newest round trip; `undefined` until a PING was answered. */
  get roundTripMs(): number | undefined {
    return this.#liveness.rtt.lastMs;
  }

  /** The shortest round trip of the path, as far as it is known. */
  get leastRoundTripMs(): number | undefined {
    const { minMs } = this.#liveness.rtt;
    return minMs === Infinity ? undefined : minMs;
  }

  /** Streams that are open or wait to be opened. */
  get openStreams(): number {
    return this.#streams.size + this.#streams.pending;
  }

  /** Streams that move in bulk now, in either direction. */
  get bulkStreams(): number {
    return this.#bulk.count(this.#clock.now());
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
   * true with a write in flight once there is no hope for it (the connection broke,
   * the peer is silent or does not read): close without waiting for it then.
   */
  get isFinished(): boolean {
    return this.#life.isClosed && this.#sending.isEmpty;
  }

  /**
   * Server role: the client has its answers and no requests run. It may close
   * before it reads what is sent now (replies to PING).
   */
  get isIdle(): boolean {
    return this.#role === "server" && this.#life.isRunning &&
      this.#streams.size === 0 && this.#streams.lastPeerId > 0;
  }

  // --- Bytes in and out -----------------------------------------------------

  /** Sends the preface and our SETTINGS. Call once, before anything else. */
  start(): void {
    this.#life.start();
    this.#nowMs = this.#liveness.lastHeardMs = this.#clock.now();
    if (this.#role === "client") this.#sending.writer.preface();
    this.#settings.start(this.#nowMs);
    this.#receiving.start();
  }

  /**
   * Sets the listener for output, called once until `takeOutput` has given
   * nothing. The listener must not call back before it returns: it schedules.
   */
  setOutputListener(listener: () => void): void {
    this.#sending.setListener(listener);
  }

  /** Takes bytes of the peer's; `chunk` is only used during the call. */
  receive(chunk: Uint8Array): void {
    if (this.#life.isClosed || chunk.length === 0) return;
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
    if (this.#isDoubted) this.#setDoubt(false);
    this.#sending.scheduler.run();
  }

  /** The peer closed its sending side: nothing more can come from it. */
  receiveEnd(): void {
    this.#life.receiveEnd(this.#receiver.isBetweenFrames);
  }

  /** The transport is gone, both ways. */
  transportClosed(error?: Error): void {
    this.#life.transportClosed(error);
  }

  /**
   * The next bytes to write, at most 128 KiB as a rule, or `undefined` when
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
    const { isClosed, nextDeadlineMs } = this.#life;
    if (isClosed) return nextDeadlineMs;
    return Math.min(
      nextDeadlineMs,
      this.#settings.nextDeadlineMs,
      this.#receiver.nextDeadlineMs,
      this.#liveness.nextDeadlineMs,
    );
  }

  /** Does all work that is due. It may be called early. */
  onDeadline(): void {
    const nowMs = this.#nowMs = this.#clock.now();
    this.#life.onDeadline(nowMs);
    if (this.#life.isClosed) return;
    const overdue = this.#settings.check(nowMs) ?? this.#receiver.check(nowMs);
    if (overdue !== undefined) return this.#life.fail(overdue);
    const lost = this.#liveness.check(nowMs);
    if (lost === "doubt") this.#setDoubt(true);
    else if (lost !== undefined) this.#life.transportClosed(lost);
  }

  /** @param isDoubted The peer owes an answer, and it is late. */
  #setDoubt(isDoubted: boolean): void {
    this.#isDoubted = isDoubted;
    this.#events.onDoubt?.(isDoubted);
  }

  /** Another keepalive than it began with: more is known of the peer. */
  keepAlive(options: KeepaliveOptions): void {
    this.#liveness.keepAlive(options);
  }

  /** Sends a PING, whose answer moves `lastHeardMs`. */
  checkLiveness(): void {
    if (!this.#life.isClosed) this.#liveness.askForLife();
  }

  /** See `Liveness.echo`; never called once the connection has ended. */
  echo(then: () => void): void {
    if (!this.#life.isClosed) this.#liveness.echo(then);
  }

  /** The peer has answered so lately that it lives, and hears us. */
  get isProven(): boolean {
    return this.#liveness.isProven;
  }

  /**
   * Calls `then` at once if {@linkcode isProven}, else with the answer to a
   * PING; never once the connection has ended. Inside, nothing may be received.
   */
  whenAlive(then: () => void): void {
    if (!this.#life.isClosed) this.#liveness.whenAlive(then);
  }

  /** See `Liveness.pad`: for bytes before an awaited answer. */
  pad(): void {
    if (!this.#life.isClosed) this.#liveness.pad();
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
    const { maxConcurrentStreams } = this.peerSettings;
    const streamId = this.#streams.openNow(stream, maxConcurrentStreams);
    if (streamId === undefined) this.#streams.addPending(stream);
    else {
      stream.activate(streamId);
      this.#settings.streamsChanged();
    }
    this.#openPending();
    return stream;
  }

  get #unusableReason(): string | undefined {
    const { unusableReason } = this.#life;
    if (unusableReason !== undefined) return unusableReason;
    return this.#streams.hasIds ? undefined : "all stream ids are used up";
  }

  #problemOfHeaders(fields: readonly HeaderField[]): string | undefined {
    return problemOfHeaderList(fields, this.peerSettings.maxHeaderListSize);
  }

  #openPending(): void {
    while (this.#life.unusableReason === undefined) {
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

  // --- Ends ------------------------------------------------------------------

  /**
   * Ends gracefully: no new streams, and when the last one has ended, so has
   * the connection (§6.8). A server first announces it, so that requests that
   * are under way are still served.
   *
   * @param reason For people, also the peer's.
   */
  shutdown(reason: string): void {
    this.#life.shutdown(reason);
  }

  /** Ends at once: GOAWAY with `code`, all streams are lost. */
  abort(code: number, reason: string): void {
    this.#life.abort(code, reason);
  }

  // --- What streams and the receiver need of us ------------------------------

  // Its methods are a prototype's: as closures they were 1 KiB of each
  // connection. Inside, because they use what is private.

  static readonly #Host = class implements StreamHost, ReceiverHost {
    readonly role: Role;
    readonly streams: StreamTable;
    readonly sending: SendingSide;
    readonly receiving: ReceivingSide;
    readonly guard: AbuseGuard;
    readonly shared: SharedLimits;
    readonly bulk: BulkSense<EngineStream>;

    constructor(private readonly of: Connection) {
      this.role = of.#role;
      this.streams = of.#streams;
      this.sending = of.#sending;
      this.receiving = of.#receiving;
      this.guard = of.#guard;
      this.shared = of.#shared;
      this.bulk = of.#bulk;
    }

    isClosed(): boolean {
      return this.of.#life.isClosed;
    }

    peerIdMax(): number {
      return this.of.#life.peerIdMax;
    }

    nowMs(): number {
      return this.of.#nowMs;
    }

    onRequest(
      streamId: number,
      fields: readonly HeaderField[],
      endStream: boolean,
      facts: SectionFacts,
    ): void {
      const { of } = this;
      const stream = new EngineStream(this);
      stream.accept(streamId);
      this.streams.addPeer(stream);
      of.#settings.streamsChanged();
      try {
        stream.setEvents(of.#events.onStream(stream));
      } catch (error) {
        return stream.faulted(error);
      }
      if (!stream.isClosed) stream.receiveHeaders(fields, endStream, facts);
    }

    onSettings(settings: readonly Setting[]): void {
      this.of.#settings.onSettings(settings);
      this.of.#openPending();
      this.of.#events.onPeerSettings?.();
    }

    onSettingsAck(): void {
      const { of } = this;
      if (!of.#settings.onAck()) {
        return this.guard.count("idleFrames", of.#nowMs);
      }
      // The number of streams may have changed while this was under way.
      of.#settings.streamsChanged();
    }

    onPing(): void {
      this.of.#liveness.onPing(this.of.#nowMs);
    }

    onPingAck(opaque: Uint8Array): void {
      const { of } = this;
      const purpose = of.#liveness.onPingAck(opaque, of.#nowMs);
      if (purpose === undefined) {
        return this.guard.count("idleFrames", of.#nowMs);
      }
      if (purpose === "probe") this.receiving.probeAnswered(of.#nowMs);
      if (purpose === "drain") of.#life.finishDrain();
      of.#liveness.proven();
    }

    onGoaway(frame: GoawayFrame): void {
      this.of.#life.onGoaway(frame);
    }

    onError(error: WireError): void {
      this.of.#life.fail(error);
    }

    startWindow(isOwn: boolean): number {
      const { ofOwnStream, ofPeerStream } = this.of.#settings.startWindow;
      return isOwn ? ofOwnStream : ofPeerStream;
    }

    peerStartWindow(): number {
      return this.of.peerSettings.initialWindowSize;
    }

    problemOfHeaders(fields: readonly HeaderField[]): string | undefined {
      return this.of.#problemOfHeaders(fields);
    }

    onAnswered(): void {
      this.guard.refund("resets");
    }

    onStreamClosed(stream: EngineStream, how: ClosedHow): void {
      const { streams } = this;
      this.receiving.closed(stream);
      if (stream.id === 0) streams.removePending(stream);
      else if (streams.remove(stream.id, how) && !streams.isLocal(stream.id)) {
        this.shared.giveStream();
      }
      // Frames that are under way when a stream closes are honest.
      this.guard.refund("idleFrames", IDLE_FRAMES_PER_STREAM);
    }

    onStreamOver(): void {
      const { of } = this;
      if (of.#life.isClosed) return;
      of.#settings.streamsChanged();
      of.#openPending();
      of.#life.endIfIdle();
    }
  };
}
