/**
 * SETTINGS in both directions of one connection (RFC 9113 §6.5): ours until
 * they are acknowledged, the peer's as they come, and what either changes.
 *
 * @module
 */

import { type Setting, SettingId } from "../frames/frame.ts";
import { ErrorCode, WireError } from "../frames/wire_error.ts";
import type { Clock } from "../sync/clock.ts";
import type { Role } from "./connection_events.ts";
import type { FrameWriter } from "./frame_writer.ts";
import {
  applySettings,
  type LocalSettings,
  PEER_SETTINGS_DEFAULT,
  type PeerSettings,
  settingsToAnnounce,
} from "./settings.ts";
import type { StreamTable } from "./stream_table.ts";
import { type ReceiveWindow, WINDOW_BYTES_DEFAULT } from "./flow_window.ts";

/** The peer must acknowledge our first SETTINGS within this (§6.5.3). */
export const SETTINGS_ACK_TIMEOUT_MS = 10_000;

/**
 * Later ones queue behind all output of both ends, on paths that may be slow:
 * an honest peer may need that long.
 */
export const SETTINGS_CHANGE_ACK_TIMEOUT_MS = 60_000;

/** What a `SettingsExchange` is made of. */
interface SettingsParts {
  readonly role: Role;
  readonly local: LocalSettings;
  readonly writer: FrameWriter;
  readonly streams: StreamTable;
  readonly clock: Clock;
}

export class SettingsExchange {
  readonly startWindow: StartWindow;
  #peer: PeerSettings = PEER_SETTINGS_DEFAULT;
  #hasPeerSettings = false;
  #ackTimeoutMs = SETTINGS_ACK_TIMEOUT_MS;
  #ackDeadlineMs = Infinity;

  constructor(private readonly parts: SettingsParts) {
    this.startWindow = new StartWindow(parts.local.initialWindowSize);
  }

  /** What the peer announced, or the defaults until it does. */
  get peer(): PeerSettings {
    return this.#peer;
  }

  /** When {@linkcode check} is due. */
  get nextDeadlineMs(): number {
    return this.#ackDeadlineMs;
  }

  /** Sends our first SETTINGS. */
  start(nowMs: number): void {
    const { local, role } = this.parts;
    this.#send(settingsToAnnounce(local, role), SETTINGS_ACK_TIMEOUT_MS, nowMs);
  }

  /** The number of open streams has changed: may be that the window must. */
  streamsChanged(): void {
    const { streams, clock } = this.parts;
    if (this.startWindow.suits(streams.size)) return;
    const nowMs = clock.now();
    const bytes = this.startWindow.due(streams.size, nowMs);
    if (bytes === undefined) return;
    const all = streams.all();
    this.startWindow.announce(bytes, all, streams.nextLocalId, nowMs);
    this.#send(
      [{ id: SettingId.INITIAL_WINDOW_SIZE, value: bytes }],
      SETTINGS_CHANGE_ACK_TIMEOUT_MS,
      nowMs,
    );
  }

  /** @returns `false` if nothing was to be acknowledged. */
  onAck(): boolean {
    const { streams } = this.parts;
    this.#ackDeadlineMs = Infinity;
    return this.startWindow.acknowledge(
      streams.all(),
      (id) => streams.isLocal(id),
    );
  }

  /** @returns What is wrong when an ACK is overdue. */
  check(nowMs: number): WireError | undefined {
    if (nowMs < this.#ackDeadlineMs) return undefined;
    return new WireError(
      ErrorCode.SETTINGS_TIMEOUT,
      "6.5.3",
      `Cannot go on: SETTINGS were not acknowledged for ${this.#ackTimeoutMs} ms`,
    );
  }

  /**
   * Applies and acknowledges the peer's.
   *
   * @throws {WireError} If they break a rule.
   */
  onSettings(settings: readonly Setting[]): void {
    const { role, writer, streams } = this.parts;
    const before = this.#peer;
    // Without a word about it the number of streams is unlimited (§6.5.2).
    const base = this.#hasPeerSettings
      ? before
      : { ...before, maxConcurrentStreams: Infinity };
    const sender = role === "client" ? "server" : "client";
    const peer = applySettings(base, settings, sender);
    this.#peer = peer;
    this.#hasPeerSettings = true;
    writer.setFrameSizeMax(peer.maxFrameSize);
    if (peer.headerTableSize !== before.headerTableSize) {
      writer.setHeaderTableSize(peer.headerTableSize);
    }
    writer.settingsAck();
    const growth = peer.initialWindowSize - before.initialWindowSize;
    for (const stream of growth === 0 ? [] : streams.all()) {
      if (stream.adjustSendWindow(growth)) continue;
      throw new WireError(
        ErrorCode.FLOW_CONTROL_ERROR,
        "6.9.2",
        `Cannot apply SETTINGS: the window of stream ${stream.id} would pass 2^31-1`,
      );
    }
  }

  #send(settings: readonly Setting[], timeoutMs: number, nowMs: number): void {
    this.parts.writer.settings(settings);
    this.#ackTimeoutMs = timeoutMs;
    this.#ackDeadlineMs = nowMs + timeoutMs;
  }
}

// The initial receive window of new streams: our INITIAL_WINDOW_SIZE, which
// steps down as streams become many (RFC 9113 §6.5.2 and §6.9.2).
//
// Every window is a promise to keep that many bytes of an unread stream; the
// more streams, the smaller the promise. A change also moves the windows of
// existing streams by the difference, at the peer when it applies our SETTINGS.
// Our side must never refuse a byte that the peer was allowed to send: a larger
// window counts from its announcement, a smaller one from the peer's ACK.

/** A bound of the start window that holds above some number of streams. */
interface StartWindowStep {
  readonly streamsAbove: number;
  readonly bytesMax: number;
}

/**
 * Up to 256 streams start as configured, by default with 64 KiB: 16 MiB in all.
 * 2048 streams of 32 KiB are 64 MiB. Beyond that a stream gets 16 KiB, which
 * still is a whole default frame; less would only make more frames.
 */
export const START_WINDOW_STEPS: readonly StartWindowStep[] = [
  { streamsAbove: 256, bytesMax: 32 * 1024 },
  { streamsAbove: 2048, bytesMax: 16 * 1024 },
];

/**
 * The window is not raised again sooner after a change than this, and only at
 * half of a step: streams that come and go at its edge must not cause SETTINGS
 * again and again, which peers count as abuse.
 */
export const START_WINDOW_RISE_PAUSE_MS = 10_000;

/** The part of a stream that a change concerns. */
interface StartingStream {
  readonly id: number;
  readonly receiveWindow: ReceiveWindow;
}

/** At most one change is under way. */
export class StartWindow {
  #announced: number;
  #acknowledged = WINDOW_BYTES_DEFAULT;
  /** The first SETTINGS go out before there is any stream. */
  #isUnderWay = true;
  /** Own streams from this id on have known only the announced value. */
  #firstOwnIdAfter = 0;
  #changedMs = 0;

  /** @param configured The most that a stream starts with; announced first. */
  constructor(private readonly configured: number) {
    this.#announced = configured;
  }

  /** For a stream that we open: the peer gets our SETTINGS before it. */
  get ofOwnStream(): number {
    return this.#announced;
  }

  /** For a stream of the peer, which may not have our SETTINGS yet. */
  get ofPeerStream(): number {
    return Math.max(this.#announced, this.#acknowledged);
  }

  /**
   * With this many streams no change is needed: the usual case, decided
   * cheaply.
   */
  suits(streams: number): boolean {
    return this.#isUnderWay || this.#suiting(streams) === this.#announced;
  }

  /**
   * The value to announce with this many streams.
   *
   * @returns `undefined` when there is none, or a change is under way.
   */
  due(streams: number, nowMs: number): number | undefined {
    if (this.#isUnderWay) return undefined;
    const wanted = this.#suiting(streams);
    if (wanted === this.#announced) return undefined;
    if (wanted < this.#announced) return wanted;
    const isEarly = nowMs < this.#changedMs + START_WINDOW_RISE_PAUSE_MS;
    const steady = this.#suiting(streams * 2);
    return isEarly || steady <= this.#announced ? undefined : steady;
  }

  /**
   * SETTINGS with `bytes` go out.
   *
   * @param streams All that exist.
   * @param nextOwnId The id that our next stream will have.
   */
  announce(
    bytes: number,
    streams: Iterable<StartingStream>,
    nextOwnId: number,
    nowMs: number,
  ): void {
    const growth = bytes - this.#announced;
    this.#announced = bytes;
    this.#isUnderWay = true;
    this.#firstOwnIdAfter = nextOwnId;
    this.#changedMs = nowMs;
    if (growth <= 0) return;
    for (const { receiveWindow } of streams) receiveWindow.shift(growth);
  }

  /**
   * The peer has acknowledged.
   *
   * @param isOwn Whether a stream was opened by us.
   * @returns `false` if there was nothing to acknowledge.
   */
  acknowledge(
    streams: Iterable<StartingStream>,
    isOwn: (id: number) => boolean,
  ): boolean {
    if (!this.#isUnderWay) return false;
    this.#isUnderWay = false;
    const growth = this.#announced - this.#acknowledged;
    this.#acknowledged = this.#announced;
    if (growth >= 0) return true;
    for (const { id, receiveWindow } of streams) {
      const isYounger = isOwn(id) && id >= this.#firstOwnIdAfter;
      if (!isYounger) receiveWindow.shift(growth);
    }
    return true;
  }

  #suiting(streams: number): number {
    let bytes = this.configured;
    for (const { streamsAbove, bytesMax } of START_WINDOW_STEPS) {
      if (streams > streamsAbove) bytes = Math.min(bytes, bytesMax);
    }
    return bytes;
  }
}
