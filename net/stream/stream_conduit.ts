/**
 * A {@linkcode Stream} as a {@linkcode Conduit}: the end of a tunnel that
 * touches the world.
 *
 * Incoming, bytes are read into one buffer that all conduits of the process
 * share, because each chunk is passed on before the next read. The next read
 * waits until all of it was consumed, so a stalled reader fills the kernel's
 * buffers and with them the peer's window. Outgoing, the bytes written in one
 * turn leave in one call; bytes without room in the stream are copied and wait.
 *
 * Reading order: `attach`, `onReady`, `#read`; `write`, `#flush`, `#send`;
 * `#close`.
 *
 * @module
 */

import {
  closedError,
  endOf,
  type Stream,
  type StreamUser,
  WOULD_BLOCK,
} from "./stream.ts";
import {
  guarded,
  INTERNAL_ERROR,
  reportInternalError,
} from "../../platform/errors/internal_errors.ts";
import {
  BUFFER_BYTES_MAX,
  sharedBufferPool,
} from "../../proto/bytes/buffer_pool.ts";
import { DATA_HEAD_BYTES_MAX } from "../../proto/packets/data_head.ts";
import { LARGE_FRAME_SIZE } from "../../proto/streams/settings.ts";
import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
  ConduitState,
} from "../../proto/transfer/conduit.ts";

/**
 * The most that one read takes: the payload of exactly two full frames between
 * our own ends. A whole buffer would leave a rest of some 60 bytes after each
 * two frames, which would need a frame, a packet and a write of its own.
 */
export const READ_BYTES_MAX: number = 2 *
  (LARGE_FRAME_SIZE - DATA_HEAD_BYTES_MAX);

/**
 * A chunk of about one TLS record is a piece of bulk, and the next piece may be
 * here already. Larger ones come from peers that read much at once.
 */
const PIECE_BYTES = { min: 8 * 1024, max: 16 * 1024 } as const;

/** Pieces leave without waiting for more once they make a frame. */
const GATHERED_BYTES = 56 * 1024;

/**
 * Bytes for a peer that reads no more which are dropped in one turn of the
 * event loop. A sender may have bytes without end (a bench target, a copy of
 * `/dev/zero`); without a pause it would keep the loop busy, and the end of the
 * connection is reported through the loop.
 */
export const DROPPED_BYTES_PER_TURN: number = 1024 * 1024;

/** Reads in a row of one conduit; then others have their turn. */
const READS_PER_TURN = 2;

/** One for all conduits: bytes are delivered before the next read. */
const shared = new Uint8Array(READ_BYTES_MAX);

/** @param stream Not to be used any more. Bytes that were peeked come first. */
export function conduitOf(stream: Stream): Conduit {
  return new StreamConduit(stream);
}

class StreamConduit implements Conduit, StreamUser {
  readonly datagrams = false;

  #events: ConduitEvents | undefined;

  // Reading. `#unconsumed` counts bytes that were delivered and not yet passed
  // on.
  #unconsumed = 0;
  #isDelivering = false;
  #readIsDue = false;
  #peerEnded = false;

  // Writing.
  readonly #batch = new WriteBatch();
  /** What the kernel had no room for. */
  #rest: Uint8Array<ArrayBuffer> | undefined;
  #flushIsDue = false;
  #wantsRoom = false;
  /** Dropped in this turn of the event loop. */
  #droppedBytes = 0;
  #sending: "open" | "ending" | "ended" | "broken" = "open";

  #end: ConduitEnd | undefined;

  constructor(private readonly stream: Stream) {
    stream.notify(this);
  }

  get state(): ConduitState {
    return {
      unreadBytes: this.#unconsumed,
      unsentBytes: this.#batch.pendingBytes + (this.#rest?.length ?? 0),
      isFull: this.#wantsRoom || this.#rest !== undefined,
    };
  }

  attach(events: ConduitEvents): void {
    if (this.#events !== undefined) {
      throw new TypeError("Cannot attach to a conduit twice");
    }
    this.#events = events;
    // Not in this turn: the caller may not be ready for events yet.
    this.#readSoon();
  }

  write(chunk: Uint8Array): number {
    // The bytes go nowhere, and `onClose` reports it.
    if (this.#end !== undefined) return 0;
    if (this.#sending === "broken") return this.#drop(chunk.length);
    if (this.#sending !== "open") {
      throw new TypeError("Cannot write to a conduit after its end");
    }
    const taken = this.#batch.append(chunk);
    if (taken < chunk.length) this.#wantsRoom = true;
    this.#flushSoon(chunk.length);
    return taken;
  }

  end(): void {
    if (this.#sending !== "open") return;
    this.#sending = "ending";
    this.#flushSoon(0);
  }

  reset(reason: string, kind: "reset" | "lost" = "reset"): void {
    if (this.#end !== undefined) return;
    this.stream.reset();
    this.#close({ kind, reason });
  }

  consumed(bytes: number): void {
    if (bytes > this.#unconsumed) {
      throw new RangeError(
        `Cannot consume ${bytes} bytes: ${this.#unconsumed} were delivered`,
      );
    }
    this.#unconsumed -= bytes;
    // Not from inside this call: the shared buffer may be in use further up.
    if (this.#unconsumed === 0 && !this.#isDelivering) this.#readSoon();
  }

  onReady(hint: number): void {
    if (this.#end !== undefined) return;
    if (!this.stream.isOpen) return this.#close(endOf(closedError()));
    if (hint !== 0 && this.#rest !== undefined) this.#sendRest();
    this.#read();
    this.#tryToClose();
  }

  onFault(): void {
    this.reset(INTERNAL_ERROR, "lost");
  }

  #onInternalError(error: unknown): void {
    reportInternalError("conduit", error);
    guarded("conduit", () => this.onFault());
  }

  // Reading ------------------------------------------------------------------

  #readSoon(): void {
    if (this.#readIsDue) return;
    this.#readIsDue = true;
    queueMicrotask(this.#readNow);
  }

  readonly #readNow = () => {
    this.#readIsDue = false;
    try {
      this.#read();
    } catch (error) {
      this.#onInternalError(error);
    }
  };

  #read(): void {
    if (this.#events === undefined || this.#readIsDue) return;
    const { turn } = this.stream;
    for (let reads = 0; this.#wantsToRead; reads++) {
      if (reads === READS_PER_TURN || turn.isOver) {
        return this.stream.goOn();
      }
      const count = this.#readOnce();
      if (count === WOULD_BLOCK) return;
      if (count === 0) return this.#onPeerEnd();
      this.#deliver(shared.subarray(0, count));
    }
  }

  get #wantsToRead(): boolean {
    return this.#unconsumed === 0 && !this.#peerEnded &&
      this.#end === undefined;
  }

  #readOnce(): number {
    try {
      return this.stream.read(shared);
    } catch (error) {
      this.#close(endOf(error));
      return WOULD_BLOCK;
    }
  }

  #deliver(chunk: Uint8Array): void {
    this.#unconsumed += chunk.length;
    this.stream.turn.moved(chunk.length);
    this.#isDelivering = true;
    this.#events!.onData(chunk);
    this.#isDelivering = false;
  }

  #onPeerEnd(): void {
    this.#peerEnded = true;
    if (this.#sending === "broken") return this.#close(UNREAD_END);
    this.#events!.onEnd();
    this.#tryToClose();
  }

  // Writing ------------------------------------------------------------------

  /**
   * One microtask later, so that all writes of this turn leave together. A piece
   * of bulk waits for those that come in the same turn.
   */
  #flushSoon(bytes: number): void {
    if (this.#flushIsDue || this.#rest !== undefined) return;
    this.#flushIsDue = true;
    const isPiece = bytes >= PIECE_BYTES.min && bytes <= PIECE_BYTES.max &&
      this.#batch.pendingBytes < GATHERED_BYTES;
    const { turn } = this.stream;
    if (isPiece || turn.isOver) turn.later(this.#flushNow);
    else queueMicrotask(this.#flushNow);
  }

  readonly #flushNow = () => {
    this.#flushIsDue = false;
    try {
      this.#flush();
    } catch (error) {
      this.#onInternalError(error);
    }
  };

  #flush(): void {
    if (this.#end !== undefined || this.#sending === "broken") return;
    const batch = this.#rest === undefined ? this.#batch.take() : undefined;
    if (batch !== undefined) this.#send(batch);
    else if (this.#sending === "ending" && this.#rest === undefined) {
      return this.#endOurSide();
    }
    this.#offerRoom();
  }

  #send(bytes: Uint8Array<ArrayBuffer>): void {
    let sent = 0;
    try {
      while (sent < bytes.length) {
        const rest = sent === 0 ? bytes : bytes.subarray(sent);
        const count = this.stream.write(rest);
        if (count === 0) {
          this.#rest = rest;
          return;
        }
        sent += count;
        this.stream.turn.moved(count);
      }
      if (!this.stream.flush()) {
        this.#rest = bytes.subarray(sent);
        return;
      }
    } catch (error) {
      return this.#onWriteError(error);
    }
    this.#landed();
    if (this.#batch.pendingBytes > 0 || this.#sending === "ending") {
      this.#flushSoon(0);
    }
  }

  #sendRest(): void {
    const rest = this.#rest!;
    this.#rest = undefined;
    this.#send(rest);
    if (this.#rest === undefined) this.#offerRoom();
  }

  /**
   * The peer takes no more bytes. Its earlier bytes are still in the kernel and
   * are delivered first: a server that answers early and closes would otherwise
   * lose its answer (as kube-apiserver does to an upload it refuses).
   */
  #onWriteError(error: unknown): void {
    this.#landed();
    this.#sending = "broken";
    this.#batch.drop();
    if (this.#peerEnded) return this.#close(endOf(error));
    this.#offerRoom();
  }

  #landed(): void {
    this.#rest = undefined;
    this.#batch.recycle();
  }

  #offerRoom(): void {
    if (!this.#wantsRoom || this.#end !== undefined) return;
    this.#wantsRoom = false;
    this.#events?.onWritable();
  }

  /** Takes bytes that reach no peer, see {@linkcode DROPPED_BYTES_PER_TURN}. */
  #drop(bytes: number): number {
    if (this.#droppedBytes === 0) this.stream.turn.later(this.#dropFurther);
    const room = DROPPED_BYTES_PER_TURN - this.#droppedBytes;
    const taken = Math.min(room, bytes);
    this.#droppedBytes += taken;
    if (taken < bytes) this.#wantsRoom = true;
    return taken;
  }

  readonly #dropFurther = () => {
    this.#droppedBytes = 0;
    try {
      this.#offerRoom();
    } catch (error) {
      this.#onInternalError(error);
    }
  };

  #endOurSide(): void {
    this.#sending = "ended";
    try {
      // The second to end need only close: one call less.
      if (!this.#peerEnded || !this.stream.closesInOrder) {
        this.stream.closeWrite();
      }
    } catch {
      // The peer has gone; its earlier bytes are delivered first. A peer that
      // closed its side in order needs no end from us.
      if (!this.#peerEnded) this.#sending = "broken";
    }
    this.#tryToClose();
  }

  /** The end: both sides have ended, and our end is on its way. */
  #tryToClose(): void {
    if (this.#sending !== "ended" || !this.#peerEnded) return;
    if (this.#end === undefined && this.#hasLeft()) {
      this.#close({ kind: "clean" });
    }
  }

  #hasLeft(): boolean {
    try {
      return this.stream.flush();
    } catch {
      return true; // It is no longer waited for.
    }
  }

  // The end ------------------------------------------------------------------

  #close(end: ConduitEnd): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    if (this.#rest !== undefined) this.#landed();
    this.#batch.drop();
    this.stream.close();
    queueMicrotask(() => {
      const events = this.#events;
      // Garbage in the old space keeps the objects that it refers to, and these
      // keep the next ones.
      this.#events = undefined;
      guarded("conduit", () => events?.onClose(end));
    });
  }
}

/** The peer ended in order, but did not read all of ours. */
const UNREAD_END: ConduitEnd = {
  kind: "reset",
  reason: "connection closed by peer while bytes were on their way to it",
};

/**
 * With this many waiting bytes no more are taken until the write in flight has
 * left. A chunk that began below the limit is taken whole if the buffer holds
 * it.
 */
export const PENDING_BYTES_SOFT_LIMIT = 64 * 1024;

class WriteBatch {
  #buffer: Uint8Array<ArrayBuffer> | undefined;
  #filled = 0;
  /** What the batch that was taken lies in. */
  #lent: Uint8Array<ArrayBuffer> | undefined;

  /** Bytes waiting for the next write. */
  get pendingBytes(): number {
    return this.#filled;
  }

  /** Copies what fits; @returns how many bytes were taken. */
  append(chunk: Uint8Array): number {
    if (this.#filled >= PENDING_BYTES_SOFT_LIMIT) return 0;
    const taken = Math.min(chunk.length, BUFFER_BYTES_MAX - this.#filled);
    const buffer = this.#reserve(this.#filled + taken);
    buffer.set(
      taken === chunk.length ? chunk : chunk.subarray(0, taken),
      this.#filled,
    );
    this.#filled += taken;
    return taken;
  }

  /**
   * The next batch to write, or `undefined`. Call `recycle` when it is written,
   * before the next one is taken.
   */
  take(): Uint8Array<ArrayBuffer> | undefined {
    const buffer = this.#buffer;
    if (buffer === undefined) return undefined;
    const batch = buffer.subarray(0, this.#filled);
    this.#lent = buffer;
    this.#buffer = undefined;
    this.#filled = 0;
    return batch;
  }

  /** Returns the memory of the batch taken, once the kernel has it. */
  recycle(): void {
    sharedBufferPool.release(this.#lent!);
    this.#lent = undefined;
  }

  /** Drops the waiting bytes. */
  drop(): void {
    if (this.#buffer !== undefined) sharedBufferPool.release(this.#buffer);
    this.#buffer = undefined;
    this.#filled = 0;
  }

  /** Makes room for `bytes` in all, moving to a bigger buffer if needed. */
  #reserve(bytes: number): Uint8Array<ArrayBuffer> {
    const old = this.#buffer;
    if (old !== undefined && old.length >= bytes) return old;
    const bigger = sharedBufferPool.acquire(bytes);
    if (old !== undefined) {
      bigger.set(old.subarray(0, this.#filled));
      sharedBufferPool.release(old);
    }
    return this.#buffer = bigger;
  }
}
