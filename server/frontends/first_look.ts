/**
 * Reads a client's first bytes until they tell its protocol, without a promise:
 * new connections are many, and each should leave little behind.
 *
 * @module
 */

import { CONNECT_HEAD_TIMEOUT_MS } from "../../net/http1/connect_session.ts";
import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import { PeekedStream } from "../../net/stream/peeked_stream.ts";
import {
  type Stream,
  type StreamUser,
  WOULD_BLOCK,
} from "../../net/stream/stream.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";

/** One buffer for all: the bytes are copied before the next read. */
const shared = new Uint8Array(16 * 1024);

/** Recognizes the protocol; the stream gives its first bytes a second time. */
export type Sniffed = (protocol: SniffedProtocol, stream: Stream) => void;

/** See the module description. */
export class FirstLook implements StreamUser {
  readonly #timer: Timer;
  #first = new Uint8Array(0);
  #isOver = false;

  /**
   * @param sniffed Called at most once. Not called, and the stream closed, when
   *   the client leaves first or says too little for too long.
   */
  constructor(
    private readonly stream: Stream,
    timers: Timers,
    private readonly sniffed: Sniffed,
  ) {
    this.#timer = timers.after(CONNECT_HEAD_TIMEOUT_MS, () => this.onFault());
    stream.notify(this);
  }

  /** Waiting bytes are read now. */
  onReady(): void {
    while (!this.#isOver) {
      const count = this.#readOnce();
      if (count === WOULD_BLOCK) return;
      if (count === 0) return this.onFault();
      this.#first = joinedBytes([this.#first, shared.subarray(0, count)]);
      const protocol = sniffProtocol(this.#first);
      // What does not tell yet is a part of HTTP/2's preface.
      if (protocol === undefined) continue;
      this.#isOver = true;
      this.#timer.cancel();
      this.sniffed(protocol, new PeekedStream(this.stream, this.#first));
    }
  }

  /** A client that is gone before it asked for anything needs no answer. */
  #readOnce(): number {
    try {
      return this.stream.read(shared);
    } catch {
      return 0;
    }
  }

  onFault(): void {
    this.#isOver = true;
    this.#timer.cancel();
    this.stream.close();
  }
}

// Which protocol a client speaks, by its first bytes.

/** HTTP/2's connection preface begins like this (RFC 9113 §3.4). */
const PREFACE = "PRI * HTTP/2.0\r\n";

/** Methods of RFC 9110 §9 and PATCH; nothing else is HTTP/1.1 to us. */
const METHODS = [
  ...["DELETE ", "GET ", "HEAD ", "OPTIONS ", "PATCH ", "POST "],
  ...["PUT ", "TRACE "],
];

/** First byte of a TLS record that carries a handshake (RFC 8446 §5.1). */
const TLS_HANDSHAKE = 0x16;

/** See {@linkcode sniffProtocol}. */
export type SniffedProtocol = "http2" | "http1" | "tls" | "unknown";

/**
 * Recognizes the protocol by the bytes received so far.
 *
 * @returns `undefined` while they could still become HTTP/2's preface.
 */
export function sniffProtocol(bytes: Uint8Array): SniffedProtocol | undefined {
  const size = Math.min(bytes.length, PREFACE.length);
  if (size === 0) return undefined;
  for (let index = 0; index < size; index++) {
    if (bytes[index] === PREFACE.charCodeAt(index)) continue;
    if (bytes[0] === TLS_HANDSHAKE) return "tls";
    // The only method that is served, so the first to look for.
    if (beginsWith(bytes, "CONNECT ")) return "http1";
    return beginsLikeMethod(bytes) ? "http1" : "unknown";
  }
  return size === PREFACE.length ? "http2" : undefined;
}

/** So far: a method that comes byte by byte is not waited for. */
function beginsLikeMethod(bytes: Uint8Array): boolean {
  return METHODS.some((method) => beginsWith(bytes, method));
}

function beginsWith(bytes: Uint8Array, text: string): boolean {
  const size = Math.min(bytes.length, text.length);
  for (let index = 0; index < size; index++) {
    if (bytes[index] !== text.charCodeAt(index)) return false;
  }
  return true;
}
