/**
 * A socket of the C library, or TLS over one, as a {@linkcode Transport} for HTTP/2: what
 * `socketTransport` makes of all other sockets, without a promise for each read
 * and write.
 *
 * It never stops reading: HTTP/2's own windows bound what a peer may send.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import { BUFFER_BYTES_MAX } from "../../proto/bytes/buffer_pool.ts";
import type { Transport, TransportEvents } from "./transport.ts";
import {
  guarded,
  INTERNAL_ERROR,
  reportInternalError,
} from "../../platform/errors/internal_errors.ts";
import { endOf } from "./byte_socket.ts";
import type { PolledSocket } from "./polled_socket.ts";
import type { Polled } from "../poll/poller.ts";
import type { PolledStream } from "./polled_stream.ts";
import { WOULD_BLOCK } from "./stream_descriptor.ts";
import type { Share } from "../poll/turn_share.ts";

/** One for all: a chunk is dealt with before the next read. */
const shared = new Uint8Array(BUFFER_BYTES_MAX);

/** See the module description. */
export class PolledTransport implements Transport, Polled {
  readonly alpn: string;
  readonly identity: PeerIdentity;
  readonly remoteAddress: string;
  readonly localAddress: string;
  readonly #socket: PolledSocket;
  readonly #descriptor: PolledStream;
  readonly #share: Share;
  #early: Uint8Array | undefined;
  #events: TransportEvents | undefined;
  #state: "open" | "closed" = "open";
  #peerEnded = false;
  #weEnded = false;

  /** What the kernel had no room for, and who waits for it to leave. */
  #rest: Uint8Array<ArrayBuffer> | undefined;
  #done: (() => void) | undefined;
  #endAfterWrite = false;
  /** Why nothing can be written any more. */
  #writeError: unknown;

  /** @param early Bytes that were read before; they are the first chunk. */
  constructor(
    socket: PolledSocket,
    early: Uint8Array | undefined,
    share: Share,
  ) {
    this.#share = share;
    this.#socket = socket;
    this.alpn = socket.alpn;
    this.identity = socket.identity;
    this.remoteAddress = socket.remoteAddress;
    this.localAddress = socket.localAddress;
    this.#early = early?.length ? early : undefined;
    this.#descriptor = socket.handOver(this);
  }

  start(events: TransportEvents): void {
    this.#events = events;
    // Not in this turn: the caller may not be ready to hear anything yet.
    queueMicrotask(() => {
      try {
        const early = this.#early;
        this.#early = undefined;
        const isHeard = early !== undefined && this.#state === "open";
        if (isHeard) events.onChunk(early);
        this.#read();
      } catch (error) {
        this.#onInternalError(error);
      }
    });
  }

  write(bytes: Uint8Array, done: () => void): void {
    if (this.#done !== undefined) {
      throw new TypeError("Cannot write: another write is in flight");
    }
    if (this.#state === "closed") return;
    this.#done = done;
    this.#send(bytes as Uint8Array<ArrayBuffer>);
  }

  closeWrite(): void {
    if (this.#done !== undefined) this.#endAfterWrite = true;
    else if (this.#state === "open") this.#endOurSide();
  }

  close(): void {
    this.#finish(undefined);
  }

  onReady(ready: number): void {
    this.#descriptor.noticed(ready);
    const rest = this.#rest;
    if (ready !== 0 && rest !== undefined) this.#send(rest);
    if (this.#early === undefined) this.#read();
    if (this.#weEnded) this.#tryToFinish();
  }

  onFault(): void {
    this.#fail(new Error(INTERNAL_ERROR));
  }

  #onInternalError(error: unknown): void {
    reportInternalError("socket", error);
    this.onFault();
  }

  #read(): void {
    const events = this.#events;
    if (events === undefined) return;
    while (this.#state === "open" && !this.#peerEnded) {
      const count = this.#readOnce();
      if (count === WOULD_BLOCK) return this.#onDrained();
      if (count === 0) return this.#onPeerEnd(events);
      const startMs = performance.now();
      events.onChunk(shared.subarray(0, count));
      const isTurnOver = this.#share.took(count, performance.now() - startMs);
      if (isTurnOver) return this.#descriptor.poller.goOn(this);
    }
  }

  #onDrained(): void {
    if (this.#writeError !== undefined) this.#fail(this.#writeError);
  }

  /** No more than may be dealt with before others have a turn. */
  get #room(): Uint8Array<ArrayBuffer> {
    const { bytes } = this.#share;
    return bytes >= shared.length ? shared : shared.subarray(0, bytes);
  }

  #readOnce(): number {
    try {
      return this.#descriptor.read(this.#room);
    } catch (error) {
      this.#fail(error);
      return WOULD_BLOCK;
    }
  }

  #onPeerEnd(events: TransportEvents): void {
    this.#peerEnded = true;
    events.onEnd();
    if (this.#writeError !== undefined) this.#fail(this.#writeError);
    else this.#tryToFinish();
  }

  #send(bytes: Uint8Array<ArrayBuffer>): void {
    let rest = bytes;
    try {
      while (rest.length > 0) {
        const count = this.#descriptor.write(rest);
        if (count === 0) {
          this.#rest = rest;
          return;
        }
        rest = rest.subarray(count);
        this.#descriptor.poller.moved(count);
      }
      if (!this.#descriptor.flush()) {
        this.#rest = rest;
        return;
      }
    } catch (error) {
      return this.#onWriteError(error);
    }
    this.#rest = undefined;
    // Not in this call, or writer and written would call each other for ever; and
    // who has moved enough leaves the event loop its turn.
    if (this.#descriptor.poller.isTurnOver) setImmediate(this.#onWritten);
    else queueMicrotask(this.#onWritten);
  }

  readonly #onWritten = () => {
    if (this.#state === "closed") return;
    const done = this.#done!;
    this.#done = undefined;
    try {
      if (this.#endAfterWrite) this.#endOurSide();
      done();
    } catch (error) {
      this.#onInternalError(error);
    }
  };

  #endOurSide(): void {
    this.#endAfterWrite = false;
    if (this.#weEnded) return;
    const { closesInOrder } = this.#descriptor;
    // The second to end need only close: one call less.
    if (this.#peerEnded && closesInOrder) return this.#finish(undefined);
    try {
      this.#descriptor.closeWrite();
      this.#weEnded = true;
    } catch (error) {
      // Who has said goodbye itself and is gone needs none of ours.
      if (this.#peerEnded) return this.#finish(undefined);
      return this.#onWriteError(error);
    }
    this.#tryToFinish();
  }

  /** Over is what both sides have ended, when our goodbye is on its way. */
  #tryToFinish(): void {
    if (!this.#weEnded || !this.#peerEnded || this.#state === "closed") return;
    try {
      if (this.#descriptor.flush()) this.#finish(undefined);
    } catch (error) {
      this.#fail(error);
    }
  }

  /**
   * The peer takes no more bytes. What it said before is in the kernel, and is
   * heard first.
   */
  #onWriteError(error: unknown): void {
    this.#rest = undefined;
    if (this.#peerEnded) return this.#fail(error);
    this.#writeError = error;
    this.#descriptor.poller.goOn(this);
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
    this.#rest = undefined;
    this.#socket.close();
    // Not in this turn: `close` may be called from inside an event.
    queueMicrotask(() => guarded("socket", () => this.#events?.onClose(error)));
  }
}
