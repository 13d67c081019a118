/**
 * The settings of both ends (RFC 9113 §6.5): what we announce and what the
 * peer has announced, with their defaults and their legal ranges.
 *
 * @module
 */

import {
  MAX_FRAME_SIZE_DEFAULT,
  MAX_FRAME_SIZE_MAX,
  type Setting,
  SettingId,
  UINT31_MAX,
} from "../frames/frame.ts";
import { ErrorCode, WireError } from "../frames/wire_error.ts";
import { fieldBytes } from "../hpack/dynamic_table.ts";
import type { HeaderField } from "../hpack/header_field.ts";
import { WINDOW_BYTES_DEFAULT } from "./flow_window.ts";

/** What we announce, and the windows we keep. All sizes in bytes. */
export interface LocalSettings {
  /** The dynamic table that the peer's HPACK encoder may use. */
  readonly headerTableSize: number;
  /** Streams that the peer may have open at once; more are refused. */
  readonly maxConcurrentStreams: number;
  /**
   * The initial receive window of each stream; it grows by use, and is smaller
   * when streams are many.
   */
  readonly initialWindowSize: number;
  /** The largest DATA payload or header fragment we accept in one frame. */
  readonly maxFrameSize: number;
  /** The longest header list we accept, by the accounting of §6.5.2. */
  readonly maxHeaderListSize: number;
  /** The initial receive window of the connection; returned on receipt. */
  readonly connectionWindow: number;
  /** How far it may grow, by bytes per round trip. */
  readonly connectionWindowMax: number;
  /** How far the receive window of one stream may grow. */
  readonly streamWindowMax: number;
}

/**
 * The DATA payload that fills a frame of exactly 65,536 bytes with its header.
 * Announce it as `maxFrameSize` between own ends: two such frames make one
 * write of 128 KiB without a short last TLS record.
 */
export const LARGE_FRAME_SIZE: number = 65_536 - 9;

/** Announced unless the caller chooses otherwise. */
export const LOCAL_SETTINGS_DEFAULT: LocalSettings = {
  headerTableSize: 4096,
  // Each stream may pin its 64 KiB window: 1000 of them 64 MiB per link.
  maxConcurrentStreams: 1000,
  initialWindowSize: 65_536,
  maxFrameSize: MAX_FRAME_SIZE_DEFAULT,
  maxHeaderListSize: 64 * 1024,
  // Sixteen fresh streams. With 16 MiB from the start, as much could queue in
  // the kernel and in the network before the speed of the path is known.
  connectionWindow: 1024 * 1024,
  connectionWindowMax: 16 * 1024 * 1024,
  streamWindowMax: 16 * 1024 * 1024,
};

/** What the peer announced; the defaults of §6.5.2 until it does. */
export interface PeerSettings {
  readonly headerTableSize: number;
  readonly maxConcurrentStreams: number;
  readonly initialWindowSize: number;
  readonly maxFrameSize: number;
  readonly maxHeaderListSize: number;
}

/**
 * How many streams a client opens before the peer's SETTINGS have arrived. The
 * RFC sets no limit; 100 is its recommended least (§6.5.2), so hardly a server
 * refuses them.
 */
const MAX_CONCURRENT_STREAMS_ASSUMED = 100;

/** See {@linkcode PeerSettings}. */
export const PEER_SETTINGS_DEFAULT: PeerSettings = {
  headerTableSize: 4096,
  maxConcurrentStreams: MAX_CONCURRENT_STREAMS_ASSUMED,
  initialWindowSize: WINDOW_BYTES_DEFAULT,
  maxFrameSize: MAX_FRAME_SIZE_DEFAULT,
  maxHeaderListSize: Infinity,
};

/** Our SETTINGS frame. Push is always refused (§8.4). */
export function settingsToAnnounce(
  local: LocalSettings,
  role: "client" | "server",
): Setting[] {
  const settings: Setting[] = [
    { id: SettingId.HEADER_TABLE_SIZE, value: local.headerTableSize },
    { id: SettingId.MAX_CONCURRENT_STREAMS, value: local.maxConcurrentStreams },
    { id: SettingId.INITIAL_WINDOW_SIZE, value: local.initialWindowSize },
    { id: SettingId.MAX_FRAME_SIZE, value: local.maxFrameSize },
    { id: SettingId.MAX_HEADER_LIST_SIZE, value: local.maxHeaderListSize },
  ];
  // Only a client may send it; a server's ENABLE_PUSH can be nothing but 0.
  if (role === "client") settings.push({ id: SettingId.ENABLE_PUSH, value: 0 });
  return settings;
}

/** Fills in the defaults and refuses what could not be announced. */
export function completeLocalSettings(
  given?: Partial<LocalSettings>,
): LocalSettings {
  if (given === undefined) return LOCAL_SETTINGS_DEFAULT;
  const local = { ...LOCAL_SETTINGS_DEFAULT, ...given };
  const { maxFrameSize, initialWindowSize, connectionWindow } = local;
  if (
    maxFrameSize < MAX_FRAME_SIZE_DEFAULT || maxFrameSize > MAX_FRAME_SIZE_MAX
  ) {
    throw new RangeError(`Cannot announce frames of ${maxFrameSize} bytes`);
  }
  if (initialWindowSize < 1 || initialWindowSize > UINT31_MAX) {
    throw new RangeError(
      `Cannot announce windows of ${initialWindowSize} bytes`,
    );
  }
  if (
    connectionWindow < WINDOW_BYTES_DEFAULT || connectionWindow > UINT31_MAX
  ) {
    // The connection's window starts at 65,535 and cannot be taken back.
    throw new RangeError(
      `Cannot keep a connection window of ${connectionWindow} bytes`,
    );
  }
  return local;
}

/**
 * The peer's settings after one SETTINGS frame, entry by entry (§6.5.3).
 *
 * @param sender The role of the sender: a server must not enable push.
 * @throws {WireError} For a value outside its range (§6.5.2).
 */
export function applySettings(
  before: PeerSettings,
  settings: readonly Setting[],
  sender: "client" | "server",
): PeerSettings {
  const after = { ...before };
  for (const { id, value } of settings) {
    switch (id) {
      case SettingId.HEADER_TABLE_SIZE:
        after.headerTableSize = value;
        break;
      case SettingId.ENABLE_PUSH:
        if (value > 1 || (value === 1 && sender === "server")) {
          throw outOfRange("ENABLE_PUSH", value, ErrorCode.PROTOCOL_ERROR);
        }
        break;
      case SettingId.MAX_CONCURRENT_STREAMS:
        after.maxConcurrentStreams = value;
        break;
      case SettingId.INITIAL_WINDOW_SIZE:
        if (value > UINT31_MAX) {
          throw outOfRange(
            "INITIAL_WINDOW_SIZE",
            value,
            ErrorCode.FLOW_CONTROL_ERROR,
          );
        }
        after.initialWindowSize = value;
        break;
      case SettingId.MAX_FRAME_SIZE:
        if (value < MAX_FRAME_SIZE_DEFAULT || value > MAX_FRAME_SIZE_MAX) {
          throw outOfRange("MAX_FRAME_SIZE", value, ErrorCode.PROTOCOL_ERROR);
        }
        after.maxFrameSize = value;
        break;
      case SettingId.MAX_HEADER_LIST_SIZE:
        after.maxHeaderListSize = value;
        break;
    }
  }
  return after;
}

/**
 * Why a peer would not take a header list, or `undefined` if it would.
 *
 * @param bytesMax Its MAX_HEADER_LIST_SIZE.
 */
export function problemOfHeaderList(
  fields: readonly HeaderField[],
  bytesMax: number,
): string | undefined {
  if (bytesMax === Infinity) return undefined;
  let bytes = 0;
  for (let at = 0; at < fields.length; at++) bytes += fieldBytes(fields[at]!);
  return bytes <= bytesMax
    ? undefined
    : `the header list has ${bytes} bytes, the peer takes at most ${bytesMax}`;
}

function outOfRange(name: string, value: number, code: ErrorCode): WireError {
  return new WireError(
    code,
    "6.5.2",
    `Cannot apply SETTINGS: ${name} is ${value}, which is out of range`,
  );
}
