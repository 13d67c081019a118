/**
 * Bytes to HTTP/2 frames (RFC 9113 §4 and §6).
 *
 * Layer: `bytes` below, `streams` above. This module does no I/O, keeps no
 * stream state and never looks inside a header block; it knows only what a
 * single frame must look like. Everything that needs memory of earlier frames
 * (CONTINUATION order, stream states, flow control) lives one layer up.
 *
 * It copies as little as possible: DATA is handed on piece by piece as views of
 * the chunk, unknown frames are skipped, and only a frame of another type that
 * is cut by the edge of a chunk is gathered, under the frame size limit.
 *
 * Reading order: `FrameDecoder.next`, then `#begin`, then the DATA methods; the
 * other types are read in `frame_payload.ts`.
 *
 * @module
 */

import {
  type DataFrame,
  type Frame,
  FRAME_HEADER_BYTES,
  FrameFlag,
  FrameType,
  MAX_FRAME_SIZE_DEFAULT,
  UINT31_MAX,
} from "./frame.ts";
import {
  checkHeader,
  decodePayload,
  type FrameHeader,
  frameName,
} from "./frame_payload.ts";
import { readUint32 } from "../bytes/byte_arrays.ts";
import { ErrorCode, WireError } from "./wire_error.ts";

/** A gathering buffer of at most this size is kept between frames. */
const GATHER_BYTES_KEPT = 1024;

const EMPTY: Uint8Array = new Uint8Array(0);

/** What the next bytes of the chunk belong to. */
type Part = "header" | "gather" | "skip" | "padLength" | "data" | "padding";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * Turns a peer's bytes into frames, one at a time, at the caller's pace.
 *
 * Push a chunk, then call {@linkcode FrameDecoder.next} until it returns
 * `undefined`. How the bytes were cut into chunks changes nothing but the
 * pieces in which DATA comes out. After a {@linkcode WireError} with connection
 * scope the decoder is spent: framing is lost and cannot be found again
 * (§5.4.1). After one with stream scope the offending frame has been skipped.
 */
export class FrameDecoder {
  readonly #header: Mutable<FrameHeader> = {
    length: 0,
    code: 0,
    flags: 0,
    streamId: 0,
  };
  /** Reused for every piece, so that the bulk path makes no garbage. */
  readonly #piece: Mutable<DataFrame> = {
    type: "DATA",
    streamId: 0,
    endStream: false,
    data: EMPTY,
    isFirst: true,
    flowBytes: 0,
    paddingBytes: 0,
  };
  /** Made when the edge of a chunk cuts a header. */
  #headerBytes = EMPTY;
  #chunk: Uint8Array = EMPTY;
  #offset = 0;
  #part: Part = "header";
  /** Bytes of a header or payload gathered so far. */
  #gathered = 0;
  #gather: Uint8Array = EMPTY;
  /** Bytes left of the DATA to deliver, or of a frame to skip. */
  #left = 0;
  #paddingLeft = 0;
  #isLaterPiece = false;

  /** @param maxFrameSize The SETTINGS_MAX_FRAME_SIZE that we announced. */
  constructor(private readonly maxFrameSize: number = MAX_FRAME_SIZE_DEFAULT) {}

  /** True between two frames: an end of the bytes here is in order. */
  get isBetweenFrames(): boolean {
    return this.#part === "header" && this.#gathered === 0 &&
      this.#offset === this.#chunk.length;
  }

  /**
   * Hands over `chunk`. It is only read until `next` has returned `undefined`,
   * which must have happened for the one before.
   */
  push(chunk: Uint8Array): void {
    if (this.#offset < this.#chunk.length) {
      throw new TypeError("Cannot push a chunk: the last one is not used up");
    }
    this.#chunk = chunk;
    this.#offset = 0;
  }

  /**
   * Decodes the next whole frame, or the next piece of a DATA frame.
   *
   * @returns The frame, valid until the next call (so are the bytes it
   *   refers to), or `undefined` when another chunk is needed.
   * @throws {WireError} When the bytes cannot be a legal frame.
   */
  next(): Frame | undefined {
    while (this.#offset < this.#chunk.length || this.#isEmptyPartDue()) {
      const frame = this.#step();
      if (frame !== undefined) return frame;
    }
    this.#chunk = this.#piece.data = EMPTY;
    this.#offset = 0;
    return undefined;
  }

  /** Empty payloads need no bytes of the chunk to be complete. */
  #isEmptyPartDue(): boolean {
    return this.#part === "gather" && this.#header.length === 0 ||
      this.#part === "data" && this.#left === 0;
  }

  #step(): Frame | undefined {
    switch (this.#part) {
      case "header":
        if (this.#readHeader()) return this.#begin();
        return undefined;
      case "gather":
        return this.#gatherPayload();
      case "skip":
        if (this.#skip()) this.#part = "header";
        return undefined;
      case "padLength":
        this.#readPadLength();
        return undefined;
      case "data":
        return this.#dataPiece();
      case "padding":
        return this.#skip() ? this.#endOfPadding() : undefined;
    }
  }

  #readHeader(): boolean {
    const available = this.#chunk.length - this.#offset;
    if (this.#gathered === 0 && available >= FRAME_HEADER_BYTES) {
      this.#parseHeader(this.#chunk, this.#offset);
      this.#offset += FRAME_HEADER_BYTES;
      return true;
    }
    if (this.#headerBytes === EMPTY) {
      this.#headerBytes = new Uint8Array(FRAME_HEADER_BYTES);
    }
    const wanted = FRAME_HEADER_BYTES - this.#gathered;
    this.#copyInto(this.#headerBytes, Math.min(wanted, available));
    if (this.#gathered < FRAME_HEADER_BYTES) return false;
    this.#gathered = 0;
    this.#parseHeader(this.#headerBytes, 0);
    return true;
  }

  #parseHeader(bytes: Uint8Array, at: number): void {
    const header = this.#header;
    header.length = bytes[at]! << 16 | bytes[at + 1]! << 8 | bytes[at + 2]!;
    header.code = bytes[at + 3]!;
    header.flags = bytes[at + 4]!;
    // The top bit is reserved and ignored (§4.1).
    header.streamId = readUint32(bytes, at + 5) & UINT31_MAX;
  }

  /** Decides by the header alone what to do with the payload. */
  #begin(): Frame | undefined {
    const header = this.#header;
    // Checked before any payload is gathered, so that a peer cannot make us
    // hold more than one frame's worth of bytes.
    if (header.length > this.maxFrameSize) {
      throw new WireError(
        ErrorCode.FRAME_SIZE_ERROR,
        "4.2",
        `Cannot accept ${
          frameName(header)
        }: ${header.length} bytes, wanted at most ${this.maxFrameSize}`,
      );
    }
    if (header.code === FrameType.DATA) {
      this.#beginData();
      return undefined;
    }
    const { code, streamId, length } = header;
    this.#part = "skip"; // What stays if the header is refused.
    this.#left = length;
    if (length === 0) this.#part = "header";
    if (code > FrameType.CONTINUATION) {
      return { type: "UNKNOWN", code, streamId, payloadBytes: length };
    }
    checkHeader(header);
    this.#part = "gather";
    return undefined;
  }

  // --- Frames that are gathered ---------------------------------------------

  #gatherPayload(): Frame | undefined {
    const { length } = this.#header;
    const available = this.#chunk.length - this.#offset;
    if (this.#gathered === 0 && available >= length) {
      const start = this.#offset;
      this.#offset += length;
      this.#part = "header";
      return decodePayload(this.#header, this.#chunk, start);
    }
    if (this.#gather.length < length) {
      this.#gather = new Uint8Array(Math.max(length, 64));
    }
    const wanted = length - this.#gathered;
    this.#copyInto(this.#gather, Math.min(wanted, available));
    if (this.#gathered < length) return undefined;
    const payload = this.#gather;
    this.#gathered = 0;
    this.#part = "header";
    if (length > GATHER_BYTES_KEPT) this.#gather = EMPTY;
    return decodePayload(this.#header, payload, 0);
  }

  #copyInto(target: Uint8Array, bytes: number): void {
    const end = this.#offset + bytes;
    target.set(this.#chunk.subarray(this.#offset, end), this.#gathered);
    this.#gathered += bytes;
    this.#offset = end;
  }

  #skip(): boolean {
    const count = Math.min(this.#left, this.#chunk.length - this.#offset);
    this.#offset += count;
    this.#left -= count;
    return this.#left === 0;
  }

  // --- §6.1 DATA ------------------------------------------------------------

  #beginData(): void {
    const { length, flags, streamId } = this.#header;
    checkHeader(this.#header);
    const piece = this.#piece;
    piece.streamId = streamId;
    piece.isFirst = true;
    piece.flowBytes = length;
    piece.paddingBytes = 0;
    this.#isLaterPiece = false;
    this.#left = length;
    this.#paddingLeft = 0;
    this.#part = flags & FrameFlag.PADDED ? "padLength" : "data";
  }

  #readPadLength(): void {
    const { length } = this.#header;
    const padLength = this.#chunk[this.#offset++]!;
    // §6.1 makes padding that fills the payload a connection error, although
    // one could still find the frame's end: it is a sign of a broken peer.
    if (padLength >= length) {
      throw new WireError(
        ErrorCode.PROTOCOL_ERROR,
        "6.1",
        `Cannot strip ${padLength} bytes of padding from a DATA payload of ${length}`,
      );
    }
    this.#piece.paddingBytes = padLength + 1;
    this.#paddingLeft = padLength;
    this.#left = length - 1 - padLength;
    this.#part = "data";
  }

  #dataPiece(): Frame | undefined {
    const start = this.#offset;
    const count = Math.min(this.#left, this.#chunk.length - start);
    this.#left -= count;
    this.#offset = start + count;
    const data = this.#chunk.subarray(start, this.#offset);
    if (this.#left > 0) return this.#deliver(data, false);
    const padding = Math.min(
      this.#paddingLeft,
      this.#chunk.length - this.#offset,
    );
    this.#offset += padding;
    this.#left = this.#paddingLeft - padding;
    if (this.#left === 0) return this.#endOfData(data);
    this.#part = "padding";
    return this.#deliver(data, false);
  }

  #endOfPadding(): Frame | undefined {
    if (this.#header.flags & FrameFlag.END_STREAM) {
      return this.#endOfData(EMPTY);
    }
    this.#part = "header";
    return undefined;
  }

  #endOfData(data: Uint8Array): Frame {
    this.#part = "header";
    return this.#deliver(
      data,
      (this.#header.flags & FrameFlag.END_STREAM) !== 0,
    );
  }

  #deliver(data: Uint8Array, endStream: boolean): Frame {
    const piece = this.#piece;
    // The object was set up for the first piece; the later ones charge nothing.
    if (this.#isLaterPiece) {
      piece.isFirst = false;
      piece.flowBytes = 0;
      piece.paddingBytes = 0;
    }
    piece.data = data;
    piece.endStream = endStream;
    this.#isLaterPiece = this.#part !== "header";
    return piece;
  }
}
