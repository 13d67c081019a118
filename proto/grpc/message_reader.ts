/**
 * Whole messages from a body that arrives in arbitrary pieces.
 *
 * Layer: gRPC. For callers that need whole messages; code that passes a large
 * message on while it arrives reads the body itself.
 *
 * Attack in mind: a prefix that announces 4 MiB costs its sender five bytes. So
 * memory is allocated as bytes arrive, never as they are announced, and a
 * compressed message may unfold to the same limit as any other.
 *
 * @module
 */

import { gunzipSync } from "node:zlib";
import type { Metadata } from "./metadata.ts";
import { GrpcError, StatusCode } from "./status.ts";

/** What we can decompress, as a value of `grpc-accept-encoding`. */
export const ACCEPTED_ENCODINGS = "identity,gzip";

/** Room that a message gets before more of it has arrived than that. */
const FIRST_BUFFER_BYTES = 4096;

const NOTHING = new Uint8Array(0);

/** See {@linkcode MessageReader}. */
export interface MessageReaderOptions {
  /** Longest message accepted, before and after decompression; 4 MiB unless given. */
  readonly messageBytesMax?: number | undefined;
  /** The sender's `grpc-encoding`; see {@linkcode encodingOf}. */
  readonly encoding?: string;
  /**
   * A message that comes in one piece is passed on as a view, without a copy:
   * for receivers that do not keep it. Off by default.
   */
  readonly lends?: boolean;
  /**
   * Called once per message, in order. The bytes are the receiver's to keep,
   * unless the reader lends them: then they are valid during the call.
   */
  onMessage(message: Uint8Array): void;
}

export class MessageReader {
  readonly #bytesMax: number;
  readonly #encoding: string;
  readonly #lends: boolean;
  #prefixFilled = 0;
  #flag = 0;
  /** As far as its prefix was read. */
  #messageBytes = 0;
  #buffer = NOTHING;
  #filled = 0;

  constructor(private readonly options: MessageReaderOptions) {
    this.#bytesMax = options.messageBytesMax ?? MESSAGE_BYTES_MAX_DEFAULT;
    this.#encoding = options.encoding ?? "identity";
    this.#lends = options.lends ?? false;
  }

  /** Bytes of an unfinished message that are held, and the room around them. */
  get bufferBytes(): number {
    return this.#buffer.length;
  }

  /**
   * Takes the next bytes of the body; they are copied where needed.
   *
   * @throws {GrpcError} RESOURCE_EXHAUSTED for a message over the limit,
   *   INTERNAL for a broken prefix or broken compression, UNIMPLEMENTED for an
   *   encoding we do not know. The reader is spent then.
   */
  push(chunk: Uint8Array): void {
    let offset = 0;
    while (offset < chunk.length) {
      if (this.#prefixFilled < MESSAGE_PREFIX_BYTES) {
        this.#readPrefix(chunk[offset++]!);
        if (this.#prefixFilled < MESSAGE_PREFIX_BYTES) continue;
        this.#begin();
        if (this.#messageBytes > 0) continue;
      }
      if (this.#canLend(chunk.length - offset)) {
        const end = offset + this.#messageBytes;
        this.#prefixFilled = 0;
        this.options.onMessage(chunk.subarray(offset, end));
        offset = end;
        continue;
      }
      offset += this.#fill(chunk, offset);
      if (this.#filled === this.#messageBytes) this.#complete();
    }
  }

  /**
   * The sender has ended its messages.
   *
   * @throws {GrpcError} INTERNAL when that cut a message short.
   */
  end(): void {
    if (this.#prefixFilled === 0) return;
    const seen = this.#prefixFilled < MESSAGE_PREFIX_BYTES
      ? `${this.#prefixFilled} bytes of a prefix`
      : `${this.#filled} of ${this.#messageBytes} bytes`;
    throw new GrpcError(
      StatusCode.INTERNAL,
      `Cannot read the last message: the body ended after ${seen}`,
    );
  }

  #readPrefix(byte: number): void {
    if (this.#prefixFilled++ === 0) {
      this.#flag = byte;
      this.#messageBytes = 0;
    } else this.#messageBytes = this.#messageBytes * 0x100 + byte;
  }

  #begin(): void {
    const flag = this.#flag;
    if (flag > 1) {
      throw new GrpcError(
        StatusCode.INTERNAL,
        `Cannot read a message: its compressed flag is ${flag}, not 0 or 1`,
      );
    }
    if (flag === 1 && this.#encoding !== "gzip") {
      throw this.#encoding === "identity"
        ? new GrpcError(
          StatusCode.INTERNAL,
          "Cannot read a message: it is marked as compressed, but no grpc-encoding was declared",
        )
        : unknownEncoding(this.#encoding);
    }
    if (this.#messageBytes > this.#bytesMax) {
      throw new GrpcError(
        StatusCode.RESOURCE_EXHAUSTED,
        `Cannot read a message of ${this.#messageBytes} bytes: at most ${this.#bytesMax} are accepted`,
      );
    }
  }

  #canLend(bytesLeft: number): boolean {
    return this.#lends && this.#filled === 0 && this.#flag === 0 &&
      bytesLeft >= this.#messageBytes;
  }

  #fill(chunk: Uint8Array, offset: number): number {
    const count = Math.min(
      chunk.length - offset,
      this.#messageBytes - this.#filled,
    );
    this.#reserve(this.#filled + count);
    this.#buffer.set(chunk.subarray(offset, offset + count), this.#filled);
    this.#filled += count;
    return count;
  }

  /** Doubles the buffer until `bytes` fit, but never beyond the message. */
  #reserve(bytes: number): void {
    if (bytes <= this.#buffer.length) return;
    let room = Math.max(this.#buffer.length * 2, FIRST_BUFFER_BYTES, bytes);
    room = Math.min(room, this.#messageBytes);
    const larger = new Uint8Array(room);
    larger.set(this.#buffer.subarray(0, this.#filled));
    this.#buffer = larger;
  }

  #complete(): void {
    const raw = this.#buffer.subarray(0, this.#messageBytes);
    const message = this.#flag === 1 ? this.#decompress(raw) : raw;
    this.#prefixFilled = 0;
    this.#buffer = NOTHING;
    this.#filled = 0;
    this.options.onMessage(message);
  }

  #decompress(raw: Uint8Array): Uint8Array {
    try {
      // A limit of 0 is refused by zlib, hence at least one byte.
      const limit = Math.max(this.#bytesMax, 1);
      return new Uint8Array(gunzipSync(raw, { maxOutputLength: limit }));
    } catch (error) {
      // Every error that zlib throws here is about the peer's bytes.
      if (error instanceof RangeError) {
        throw new GrpcError(
          StatusCode.RESOURCE_EXHAUSTED,
          `Cannot read a gzip message: it unfolds to more than the ${this.#bytesMax} bytes that are accepted`,
        );
      }
      throw new GrpcError(
        StatusCode.INTERNAL,
        `Cannot read a gzip message: ${(error as Error).message}`,
      );
    }
  }
}

/** The `grpc-encoding` that came with `metadata`; `identity` when none did. */
export function encodingOf(metadata: Metadata): string {
  return metadata.text("grpc-encoding") ?? "identity";
}

/** Whether {@linkcode MessageReader} can undo `encoding`. */
export function isAcceptedEncoding(encoding: string): boolean {
  return ACCEPTED_ENCODINGS.split(",").includes(encoding);
}

/** The error for an encoding that we do not know. */
export function unknownEncoding(encoding: string): GrpcError {
  return new GrpcError(
    StatusCode.UNIMPLEMENTED,
    `Cannot read messages in grpc-encoding ${
      JSON.stringify(encoding)
    }: accepted are ${ACCEPTED_ENCODINGS}`,
  );
}

// The one message of a direction that has exactly one.
//
// Layer: gRPC. Both ends of a unary call read this way, and the request of a
// call whose answers are a stream.

export class OnlyMessage {
  readonly #bytesMax: number | undefined;
  #reader: MessageReader | undefined;
  #message: Uint8Array | undefined;

  /** @param messageBytesMax Longest message accepted; 4 MiB when `undefined`. */
  constructor(
    private readonly what: "request" | "response",
    messageBytesMax?: number,
  ) {
    this.#bytesMax = messageBytesMax;
  }

  /** Sets the `grpc-encoding` of the message. Call once, first. */
  expect(encoding: string): void {
    this.#reader = new MessageReader({
      messageBytesMax: this.#bytesMax,
      encoding,
      onMessage: (message) => {
        if (this.#message !== undefined) throw this.#violation("more");
        this.#message = message;
      },
    });
  }

  /** @throws {GrpcError} As `MessageReader.push`, and for a second message. */
  push(chunk: Uint8Array): void {
    this.#reader?.push(chunk);
  }

  /**
   * The message, once the sender is done.
   *
   * @throws {GrpcError} When there was none or it was cut short.
   */
  take(): Uint8Array {
    this.#reader?.end();
    if (this.#message === undefined) throw this.#violation("none");
    return this.#message;
  }

  /** grpc/doc/statuscodes.md: a cardinality violation is UNIMPLEMENTED. */
  #violation(seen: "none" | "more"): GrpcError {
    return new GrpcError(
      StatusCode.UNIMPLEMENTED,
      `Cannot take the ${this.what}: there was ${seen}, wanted one message`,
    );
  }
}

// The five bytes in front of every gRPC message (PROTOCOL-HTTP2,
// "Length-Prefixed-Message"): a compressed flag and a big-endian length.
//
// Layer: gRPC. Knows no limits and keeps no state; `message_reader.ts` does.

/** Bytes of a message prefix. */
export const MESSAGE_PREFIX_BYTES = 5;

/** What gRPC implementations accept by default. */
const MESSAGE_BYTES_MAX_DEFAULT = 4 * 1024 * 1024;

/**
 * Writes the prefix of an uncompressed message into `into` at `offset`.
 *
 * @param messageBytes Below 2^32.
 */
export function writeMessagePrefix(
  into: Uint8Array,
  messageBytes: number,
  offset = 0,
): void {
  into[offset] = 0;
  into[offset + 1] = messageBytes >>> 24;
  into[offset + 2] = messageBytes >>> 16;
  into[offset + 3] = messageBytes >>> 8;
  into[offset + 4] = messageBytes;
}

/** `message` with its prefix in front: a copy. */
export function frameMessage(message: Uint8Array): Uint8Array {
  const framed = new Uint8Array(MESSAGE_PREFIX_BYTES + message.length);
  writeMessagePrefix(framed, message.length);
  framed.set(message, MESSAGE_PREFIX_BYTES);
  return framed;
}
