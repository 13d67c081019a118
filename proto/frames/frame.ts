/**
 * The HTTP/2 frame vocabulary as one closed union, plus the constants of
 * RFC 9113 §4 and §6. Pure data: nothing here reads, writes or decides.
 *
 * @module
 */

/** Bytes in every frame header (§4.1). */
export const FRAME_HEADER_BYTES = 9;

/** SETTINGS_MAX_FRAME_SIZE before the peer sends another (§6.5.2). */
export const MAX_FRAME_SIZE_DEFAULT = 16_384;

/** The largest SETTINGS_MAX_FRAME_SIZE (§6.5.2). */
export const MAX_FRAME_SIZE_MAX = 0xff_ffff;

/** The largest stream id, window and window increment (§4.1, §6.9). */
export const UINT31_MAX = 0x7fff_ffff;

/** Frame type codes (§6), in the RFC's spelling. */
export const FrameType = {
  DATA: 0x0,
  HEADERS: 0x1,
  PRIORITY: 0x2,
  RST_STREAM: 0x3,
  SETTINGS: 0x4,
  PUSH_PROMISE: 0x5,
  PING: 0x6,
  GOAWAY: 0x7,
  WINDOW_UPDATE: 0x8,
  CONTINUATION: 0x9,
} as const;

/** Flag bits (§6). A bit means something only for the types named beside it. */
export const FrameFlag = {
  ACK: 0x1, // SETTINGS, PING
  END_STREAM: 0x1, // DATA, HEADERS
  END_HEADERS: 0x4, // HEADERS, PUSH_PROMISE, CONTINUATION
  PADDED: 0x8, // DATA, HEADERS, PUSH_PROMISE
  PRIORITY: 0x20, // HEADERS
} as const;

/** Identifiers of settings (§6.5.2). Unknown ones are ignored (§6.5.2). */
export const SettingId = {
  HEADER_TABLE_SIZE: 0x1,
  ENABLE_PUSH: 0x2,
  MAX_CONCURRENT_STREAMS: 0x3,
  INITIAL_WINDOW_SIZE: 0x4,
  MAX_FRAME_SIZE: 0x5,
  MAX_HEADER_LIST_SIZE: 0x6,
} as const;

/**
 * A decoded frame. Switch on `type`; the compiler then proves that every kind
 * was handled, so adding a kind breaks the build exactly where work is needed.
 */
export type Frame =
  | DataFrame
  | HeadersFrame
  | PriorityFrame
  | RstStreamFrame
  | SettingsFrame
  | PushPromiseFrame
  | PingFrame
  | GoawayFrame
  | WindowUpdateFrame
  | ContinuationFrame
  | UnknownFrame;

/**
 * DATA (§6.1), or a piece of it: the decoder hands the payload on as it comes.
 * The pieces of one frame follow each other without another frame between.
 */
export interface DataFrame {
  readonly type: "DATA";
  readonly streamId: number;
  /** True with the last piece of a frame that has END_STREAM. */
  readonly endStream: boolean;
  readonly data: Uint8Array;
  /** True with the first piece of a frame, the one that is charged. */
  readonly isFirst: boolean;
  /**
   * Bytes to charge against both windows: the first piece carries those of the
   * whole payload, padding included (§6.1), the others 0.
   */
  readonly flowBytes: number;
  /** The part of `flowBytes` that will never be delivered: padding. */
  readonly paddingBytes: number;
}

/** HEADERS (§6.2). The fragment is opaque here. */
export interface HeadersFrame {
  readonly type: "HEADERS";
  readonly streamId: number;
  readonly endStream: boolean;
  readonly endHeaders: boolean;
  readonly fragment: Uint8Array;
  /**
   * The stream it depends on, if it has the PRIORITY flag. Deprecated (§5.3.2),
   * kept because a stream that depends on itself is an error.
   */
  readonly dependsOn?: number;
}

/** PRIORITY (§6.3): deprecated and without effect, but its form is checked. */
export interface PriorityFrame {
  readonly type: "PRIORITY";
  readonly streamId: number;
  readonly dependsOn: number;
}

/** RST_STREAM (§6.4). The code stays a number: unknown codes are legal (§7). */
export interface RstStreamFrame {
  readonly type: "RST_STREAM";
  readonly streamId: number;
  readonly errorCode: number;
}

/** One setting; unknown identifiers are legal. */
export interface Setting {
  readonly id: number;
  readonly value: number;
}

/** SETTINGS (§6.5), in the order in which they were sent. */
interface SettingsFrame {
  readonly type: "SETTINGS";
  readonly ack: boolean;
  readonly settings: readonly Setting[];
}

/** PUSH_PROMISE (§6.6). We refuse push, so the engine only counts it an error. */
interface PushPromiseFrame {
  readonly type: "PUSH_PROMISE";
  readonly streamId: number;
  readonly promisedId: number;
  readonly endHeaders: boolean;
  readonly fragment: Uint8Array;
}

/** PING (§6.7). `opaque` is always 8 bytes. */
export interface PingFrame {
  readonly type: "PING";
  readonly ack: boolean;
  readonly opaque: Uint8Array;
}

/** GOAWAY (§6.8). */
export interface GoawayFrame {
  readonly type: "GOAWAY";
  readonly lastStreamId: number;
  readonly errorCode: number;
  readonly debugData: Uint8Array;
}

/** WINDOW_UPDATE (§6.9). Stream 0 is the connection. */
export interface WindowUpdateFrame {
  readonly type: "WINDOW_UPDATE";
  readonly streamId: number;
  readonly increment: number;
}

/** CONTINUATION (§6.10). */
export interface ContinuationFrame {
  readonly type: "CONTINUATION";
  readonly streamId: number;
  readonly endHeaders: boolean;
  readonly fragment: Uint8Array;
}

/**
 * A type we do not know. §4.1 has it ignored: its payload is skipped as it
 * comes, never gathered, and the engine only counts the frame.
 */
interface UnknownFrame {
  readonly type: "UNKNOWN";
  readonly code: number;
  readonly streamId: number;
  readonly payloadBytes: number;
}
