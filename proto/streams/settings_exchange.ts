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
import { StartWindow } from "./start_window.ts";
import type { StreamTable } from "./stream_table.ts";

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
