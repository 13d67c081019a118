/**
 * Where a message's body ends (RFC 9112 §6, §7), found while it passes.
 *
 * It counts bytes and reads chunk headers, and changes nothing: the body passes
 * as it came, and bytes after it do not.
 *
 * @module
 */

import { FIELD_LINE, type Fields } from "./fields.ts";
import type { ResponseHead } from "./head.ts";
import { MessageError, quote } from "./refusal.ts";

/** How the end of a body is known. */
export type BodyLength =
  | { readonly kind: "bytes"; readonly bytes: number }
  | { readonly kind: "chunked" }
  /** Answers only: the body ends with the connection. */
  | { readonly kind: "untilClose" };

/** There is no body. */
export const NO_BODY: BodyLength = { kind: "bytes", bytes: 0 };

/**
 * Longest line of a chunk's size with extensions, which no peer of ours sends.
 */
export const CHUNK_LINE_BYTES_MAX = 256;

/** Most bytes of trailer lines: a kubelet sends none. */
export const TRAILER_BYTES_MAX = 8192;

/**
 * The length of the body, from the head.
 *
 * @param otherwise The result when the head does not state it.
 * @throws {MessageError} For everything that two parsers could read in two ways
 *   (RFC 9112 §6.3).
 */
export function bodyLength(
  fields: Fields,
  otherwise: BodyLength,
): BodyLength {
  const status = fields.faultStatus;
  const length = fields.one("content-length");
  const coding = fields.one("transfer-encoding");
  if (coding === undefined) {
    if (length === undefined) return otherwise;
    if (/^[0-9]{1,15}$/.test(length)) {
      return { kind: "bytes", bytes: Number(length) };
    }
    throw new MessageError(
      status,
      `Cannot use the Content-Length ${quote(length)}, wanted a number`,
    );
  }
  if (length !== undefined) {
    throw new MessageError(
      status,
      "Cannot tell where the body ends: there are Content-Length and " +
        "Transfer-Encoding",
    );
  }
  if (coding.toLowerCase() === "chunked") return { kind: "chunked" };
  throw new MessageError(
    status,
    `Cannot use the Transfer-Encoding ${quote(coding)}, wanted "chunked"`,
  );
}

/**
 * Where the body of an answer ends; some have no body, whatever their heads say
 * (RFC 9112 §6.3).
 *
 * @param method The request's.
 * @throws {MessageError} As {@linkcode bodyLength}.
 */
export function answerLength(
  method: string,
  { status, fields }: ResponseHead,
): BodyLength {
  const length = bodyLength(fields, { kind: "untilClose" });
  const hasNone = method === "HEAD" || status === 204 || status === 304;
  return hasNone ? NO_BODY : length;
}

/** What the next byte of a chunked body is a part of. */
type ChunkPart = "size" | "data" | "dataEnd" | "trailer" | "done";

/** Follows one body. */
export class BodyFraming {
  /** Remaining bytes of the body, or of the chunk. */
  #leftBytes: number;
  #part: ChunkPart = "size";
  #line = "";
  #trailerBytes = 0;

  constructor(private readonly length: BodyLength) {
    this.#leftBytes = length.kind === "bytes" ? length.bytes : 0;
  }

  /** Nothing more belongs to the body. */
  get isDone(): boolean {
    const { kind } = this.length;
    if (kind === "bytes") return this.#leftBytes === 0;
    return kind === "chunked" && this.#part === "done";
  }

  /** Whether the body is whole if nothing more comes. */
  get mayEnd(): boolean {
    return this.isDone || this.length.kind === "untilClose";
  }

  /**
   * Reads the next bytes of the connection.
   *
   * @param onContent Called for each part that is content and not framing.
   * @returns How many of them belong to the body.
   * @throws {MessageError} When they are no chunks.
   */
  take(
    bytes: Uint8Array,
    onContent?: (from: number, to: number) => void,
  ): number {
    switch (this.length.kind) {
      case "bytes": {
        const count = Math.min(this.#leftBytes, bytes.length);
        this.#leftBytes -= count;
        if (count > 0) onContent?.(0, count);
        return count;
      }
      case "chunked":
        return this.#takeChunked(bytes, onContent);
      case "untilClose":
        if (bytes.length > 0) onContent?.(0, bytes.length);
        return bytes.length;
    }
  }

  #takeChunked(
    bytes: Uint8Array,
    onContent?: (from: number, to: number) => void,
  ): number {
    let at = 0;
    while (at < bytes.length && this.#part !== "done") {
      if (this.#part === "data") {
        const count = Math.min(this.#leftBytes, bytes.length - at);
        this.#leftBytes -= count;
        onContent?.(at, at + count);
        at += count;
        if (this.#leftBytes === 0) this.#part = "dataEnd";
      } else this.#takeByte(bytes[at++]!);
    }
    return at;
  }

  /** One byte of a line, all of which end with CR LF and nothing less. */
  #takeByte(byte: number): void {
    if (
      this.#part === "trailer" && ++this.#trailerBytes > TRAILER_BYTES_MAX
    ) {
      throw broken(`trailers of more than ${TRAILER_BYTES_MAX} bytes`);
    }
    this.#line += String.fromCharCode(byte);
    if (byte === LF) {
      if (!this.#line.endsWith("\r\n")) throw broken("a line without CR");
      const line = this.#line.slice(0, -2);
      this.#line = "";
      if (line.includes("\r")) throw broken("a CR within a line");
      return this.#onLine(line);
    }
    if (this.#part !== "trailer" && this.#line.length > CHUNK_LINE_BYTES_MAX) {
      throw broken(`a line of more than ${CHUNK_LINE_BYTES_MAX} bytes`);
    }
  }

  #onLine(line: string): void {
    switch (this.#part) {
      case "size":
        this.#leftBytes = chunkSize(line);
        this.#part = this.#leftBytes === 0 ? "trailer" : "data";
        return;
      case "dataEnd":
        if (line !== "") throw broken("bytes behind a chunk's end");
        this.#part = "size";
        return;
      case "trailer":
        if (line === "") this.#part = "done";
        else if (!FIELD_LINE.test(line)) throw broken("a trailer that is none");
    }
  }
}

const LF = 10;

function chunkSize(line: string): number {
  const match = /^([0-9A-Fa-f]{1,12})(?:[ \t]*;[\t\x20-\x7e]*)?$/.exec(line);
  if (match === null) throw broken(`${quote(line)} as a chunk's size`);
  return parseInt(match[1]!, 16);
}

function broken(seen: string): MessageError {
  return new MessageError(400, `Cannot read a chunked body: saw ${seen}`);
}
