/**
 * Frames into the output: the one place where the engine's decisions become
 * bytes. Decides nothing, except where a header block must be cut.
 *
 * @module
 */

import type { Output, OutputKind } from "../bytes/output.ts";
import {
  type Frame,
  FRAME_HEADER_BYTES,
  FrameFlag,
  FrameType,
  MAX_FRAME_SIZE_DEFAULT,
  type Setting,
} from "../frames/frame.ts";
import {
  frameBytes,
  writeFrame,
  writeFrameHeader,
} from "../frames/frame_encoder.ts";
import { writeUint32 } from "../bytes/byte_arrays.ts";
import { HpackEncoder } from "../hpack/encoder.ts";
import type { HeaderField } from "../hpack/header_field.ts";
import { LARGE_FRAME_SIZE } from "./settings.ts";

/** The first bytes of a client (RFC 9113 §3.4). */
export const CLIENT_PREFACE: Uint8Array = new TextEncoder().encode(
  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
);

/** The longest explanation that goes into a GOAWAY. */
const DEBUG_BYTES_MAX = 256;

/**
 * The payload of a full packet on a path with packets of 1,500 bytes. The
 * frame's type has no meaning, so every peer skips it (§4.1, §5.5).
 */
const PADDING: Frame = {
  type: "UNKNOWN",
  code: 0xf5,
  streamId: 0,
  payloadBytes: 1_460,
};

const SETTINGS_ACK: Frame = { type: "SETTINGS", ack: true, settings: [] };

export class FrameWriter {
  readonly #encoder: HpackEncoder = new HpackEncoder();
  #frameSizeMax = MAX_FRAME_SIZE_DEFAULT;

  /** @param onOutput Called after each frame. */
  constructor(
    private readonly output: Output,
    private readonly onOutput: () => void,
  ) {}

  /** The most payload we put into one frame. */
  get frameSizeMax(): number {
    return this.#frameSizeMax;
  }

  /** Obeys the peer's MAX_FRAME_SIZE, up to a useful size. */
  setFrameSizeMax(bytes: number): void {
    this.#frameSizeMax = Math.min(bytes, LARGE_FRAME_SIZE);
  }

  /** Obeys the peer's HEADER_TABLE_SIZE. */
  setHeaderTableSize(bytes: number): void {
    this.#encoder.setPeerTableSize(bytes);
  }

  preface(): void {
    const at = this.output.reserve(CLIENT_PREFACE.length, "control");
    this.output.buffer.set(CLIENT_PREFACE, at);
    this.onOutput();
  }

  settings(settings: readonly Setting[]): void {
    this.#whole({ type: "SETTINGS", ack: false, settings });
  }

  settingsAck(): void {
    // Never urgent: earlier frames were built by the earlier settings.
    this.#whole(SETTINGS_ACK);
  }

  ping(ack: boolean, opaque: Uint8Array): void {
    const at = this.output.reserveUrgent(FRAME_HEADER_BYTES + 8);
    writeFrame(this.output.buffer, at, { type: "PING", ack, opaque });
    this.onOutput();
  }

  /** Fills a packet before the next {@linkcode FrameWriter.ping}. */
  padding(): void {
    const at = this.output.reserveUrgent(frameBytes(PADDING));
    writeFrame(this.output.buffer, at, PADDING);
    this.onOutput();
  }

  windowUpdate(streamId: number, increment: number): void {
    const at = this.output.reserveUrgent(FRAME_HEADER_BYTES + 4);
    const { buffer } = this.output;
    writeFrameHeader(buffer, at, 4, FrameType.WINDOW_UPDATE, 0, streamId);
    writeUint32(buffer, at + FRAME_HEADER_BYTES, increment);
    this.onOutput();
  }

  rstStream(streamId: number, errorCode: number): void {
    this.#whole({ type: "RST_STREAM", streamId, errorCode });
  }

  /** @param reason For people who read traces; cut to 256 bytes. */
  goaway(lastStreamId: number, errorCode: number, reason: string): void {
    const debugData = new TextEncoder().encode(reason)
      .subarray(0, DEBUG_BYTES_MAX);
    this.#whole({ type: "GOAWAY", lastStreamId, errorCode, debugData });
  }

  /**
   * Encodes and sends a header section, as HEADERS and CONTINUATION frames.
   *
   * @param kind `bulk` for requests of our own, which no peer provokes.
   */
  headers(
    streamId: number,
    fields: readonly HeaderField[],
    endStream: boolean,
    kind: OutputKind,
  ): void {
    const block = this.#encoder.encode(fields);
    const max = this.#frameSizeMax;
    if (block.length <= max) {
      return this.#wholeHeaders(streamId, block, endStream, kind);
    }
    const frames = Math.ceil(block.length / max);
    // Reserved in one piece: nothing, not even an urgent PING in another
    // batch, may stand between the frames of a block (§6.10).
    const total = block.length + frames * FRAME_HEADER_BYTES;
    let at = this.output.reserve(total, kind);
    const { buffer } = this.output;
    for (let index = 0; index < frames; index++) {
      const fragment = block.subarray(index * max, (index + 1) * max);
      const isFirst = index === 0;
      const flags = (isFirst && endStream ? FrameFlag.END_STREAM : 0) |
        (index === frames - 1 ? FrameFlag.END_HEADERS : 0);
      const code = isFirst ? FrameType.HEADERS : FrameType.CONTINUATION;
      writeFrameHeader(buffer, at, fragment.length, code, flags, streamId);
      buffer.set(fragment, at + FRAME_HEADER_BYTES);
      at += FRAME_HEADER_BYTES + fragment.length;
    }
    this.onOutput();
  }

  /** One DATA frame of `head` and `body`, each byte copied once. */
  data(
    streamId: number,
    head: Uint8Array,
    body: Uint8Array,
    endStream: boolean,
  ): void {
    const length = head.length + body.length;
    const at = this.output.reserve(FRAME_HEADER_BYTES + length, "bulk");
    const { buffer } = this.output;
    const flags = endStream ? FrameFlag.END_STREAM : 0;
    writeFrameHeader(buffer, at, length, FrameType.DATA, flags, streamId);
    const start = at + FRAME_HEADER_BYTES;
    if (head.length > 0) buffer.set(head, start);
    buffer.set(body, start + head.length);
    this.onOutput();
  }

  /** A section that fits one frame, as nearly all do. */
  #wholeHeaders(
    streamId: number,
    block: Uint8Array,
    endStream: boolean,
    kind: OutputKind,
  ): void {
    const { length } = block;
    const at = this.output.reserve(FRAME_HEADER_BYTES + length, kind);
    const { buffer } = this.output;
    const flags = FrameFlag.END_HEADERS |
      (endStream ? FrameFlag.END_STREAM : 0);
    writeFrameHeader(buffer, at, length, FrameType.HEADERS, flags, streamId);
    buffer.set(block, at + FRAME_HEADER_BYTES);
    this.onOutput();
  }

  #whole(frame: Frame): void {
    const at = this.output.reserve(frameBytes(frame), "control");
    writeFrame(this.output.buffer, at, frame);
    this.onOutput();
  }
}
