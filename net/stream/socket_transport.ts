/**
 * A connected socket as a {@linkcode Transport} for HTTP/2.
 *
 * It never stops reading: HTTP/2's own windows bound what a peer may send.
 *
 * @module
 */

import {
  guarded,
  INTERNAL_ERROR,
  reportInternalError,
} from "../../platform/errors/internal_errors.ts";
import { setImmediate } from "node:timers";
import type { Transport, TransportEvents } from "./transport.ts";
import { type ByteSocket, endOf } from "./byte_socket.ts";
import { PolledSocket } from "./polled_socket.ts";
import { PolledTransport } from "./polled_transport.ts";
import { ReadBuffer } from "../buffers/read_buffer.ts";
import { type Share, TurnShare } from "../poll/turn_share.ts";

/**
 * @param early Bytes that were read before, such as those that told HTTP/2
 *   from HTTP/1.1; they are the first chunk.
 * @param share How much is dealt with before others have a turn.
 */
export function socketTransport(
  socket: ByteSocket,
  early?: Uint8Array,
  share: Share = new TurnShare(),
): Transport {
  return socket instanceof PolledSocket
    ? new PolledTransport(socket, early, share)
    : new SocketTransport(socket, early, share);
}

class SocketTransport implements Transport {
  readonly #socket: ByteSocket;
  readonly #reader = new ReadBuffer();
  readonly #share: Share;
  #early: Uint8Array | undefined;
  #events: TransportEvents | undefined;
  #state: "open" | "closed" = "open";
  #peerEnded = false;
  #weEnded = false;
  #isReading = false;

  #writing: Uint8Array | undefined;
  #offset = 0;
  #done: (() => void) | undefined;
  #endAfterWrite = false;
  /** Why nothing can be written any more. */
  #writeError: unknown;

  constructor(
    socket: ByteSocket,
    early: Uint8Array | undefined,
    share: Share,
  ) {
    this.#share = share;
    this.#socket = socket;
    this.#early = early?.length ? early : undefined;
  }

  get remoteAddress() {
    return this.#socket.remoteAddress;
  }

  get localAddress() {
    return this.#socket.localAddress;
  }

  get alpn() {
    return this.#socket.alpn;
  }

  get identity() {
    return this.#socket.identity;
  }

  start(events: TransportEvents): void {
    this.#events = events;
    if (this.#early === undefined) return this.#read();
    queueMicrotask(() => {
      const early = this.#early!;
      this.#early = undefined;
      this.#deliver(early, () => this.#read());
    });
  }

  write(bytes: Uint8Array, done: () => void): void {
    if (this.#writing !== undefined) {
      throw new TypeError("Cannot write: another write is in flight");
    }
    if (this.#state === "closed") return;
    this.#writing = bytes;
    this.#offset = 0;
    this.#done = done;
    this.#send(bytes);
  }

  closeWrite(): void {
    if (this.#writing !== undefined) this.#endAfterWrite = true;
    else if (this.#state === "open") this.#endOurSide();
  }

  close(): void {
    this.#finish(undefined);
  }

  #read(): void {
    if (this.#writeError !== undefined) this.#fail(this.#writeError);
    if (this.#state === "closed") return;
    this.#isReading = true;
    this.#socket.read(this.#reader.buffer)
      .then(this.#onRead, this.#onReadError);
  }

  readonly #onRead = (count: number | null) => {
    try {
      this.#took(count);
    } catch (error) {
      this.#onFault(error);
    }
  };

  /** A slip of ours costs this connection. */
  #onFault(error: unknown): void {
    reportInternalError("socket", error);
    this.#finish(new Error(INTERNAL_ERROR));
  }

  #took(count: number | null): void {
    this.#isReading = false;
    if (this.#state === "closed") return this.#reader.release();
    if (count === null) {
      this.#reader.release();
      this.#peerEnded = true;
      this.#events!.onEnd();
      if (this.#weEnded) this.#finish(undefined);
      return;
    }
    this.#deliver(this.#reader.buffer.subarray(0, count), () => {
      this.#reader.adapt(count);
      if (this.#state === "open") this.#read();
      else this.#reader.release();
    });
  }

  /** In as many turns as it takes. The buffer is ours until `done`. */
  #deliver(bytes: Uint8Array, done: () => void): void {
    const share = this.#share;
    let startMs = performance.now();
    let isTurnOver = false;
    let rest = bytes;
    while (this.#state === "open" && rest.length > 0 && !isTurnOver) {
      const next = rest.subarray(0, share.bytes);
      rest = rest.subarray(next.length);
      this.#events!.onChunk(next);
      const nowMs = performance.now();
      isTurnOver = share.took(next.length, nowMs - startMs);
      startMs = nowMs;
    }
    if (!isTurnOver) return done();
    setImmediate(() => {
      try {
        if (rest.length > 0) this.#deliver(rest, done);
        else done();
      } catch (error) {
        this.#onFault(error);
      }
    });
  }

  readonly #onReadError = (error: unknown) => {
    this.#isReading = false;
    this.#reader.release();
    this.#fail(error);
  };

  #send(bytes: Uint8Array): void {
    this.#socket.write(bytes).then(this.#onWritten, this.#onWriteError);
  }

  readonly #onWritten = (count: number) => {
    if (this.#state === "closed") return;
    const bytes = this.#writing!;
    this.#offset += count;
    if (this.#offset < bytes.length) {
      return this.#send(bytes.subarray(this.#offset));
    }
    this.#writing = undefined;
    const done = this.#done!;
    try {
      if (this.#endAfterWrite) this.#endOurSide();
      done();
    } catch (error) {
      this.#onFault(error);
    }
  };

  /**
   * The peer takes no more bytes. What was read already may not have been dealt
   * with yet, and is heard first.
   */
  readonly #onWriteError = (error: unknown) => {
    if (this.#isReading || this.#peerEnded) this.#fail(error);
    else this.#writeError = error;
  };

  #endOurSide(): void {
    this.#endAfterWrite = false;
    // The second to end need only close: one operation less.
    if (this.#peerEnded && this.#socket.closesInOrder) {
      return this.#finish(undefined);
    }
    this.#socket.closeWrite().then(() => {
      this.#weEnded = true;
      if (this.#peerEnded) this.#finish(undefined);
    }, this.#onWriteError);
  }

  #fail(error: unknown): void {
    if (this.#state === "closed") return;
    const end = endOf(error);
    const text = end.kind === "clean" ? "" : end.reason;
    this.#finish(new Error(text, { cause: error }));
  }

  #finish(error: Error | undefined): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#socket.close();
    if (!this.#isReading) this.#reader.release();
    // Not in this turn: `close` may be called from inside an event.
    queueMicrotask(() => guarded("socket", () => this.#events?.onClose(error)));
  }
}
