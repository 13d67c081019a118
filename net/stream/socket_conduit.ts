/**
 * A connected socket as a {@linkcode Conduit}: the end of a tunnel that touches
 * the world.
 *
 * Incoming, one read's worth of bytes is delivered and the next read waits
 * until all of it was consumed, so a stalled reader fills the kernel's buffers
 * and with them the peer's window, not our memory. Outgoing, bytes are copied
 * into a batch; one write is in flight and everything else joins the next one.
 *
 * Reading order: `attach`, `#read`, `#onRead`; `write`, `#flush`, `#onWritten`;
 * `#close`, `#settle`.
 *
 * @module
 */

import {
  guarded,
  INTERNAL_ERROR,
  reportInternalError,
} from "../../platform/errors/internal_errors.ts";
import { setImmediate } from "node:timers";
import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
} from "../../proto/transfer/conduit.ts";
import { DATA_HEAD_BYTES_MAX } from "../../proto/packets/data_head.ts";
import { LARGE_FRAME_SIZE } from "../../proto/streams/settings.ts";
import { type ByteSocket, endOf } from "./byte_socket.ts";
import { ReadBuffer } from "../buffers/read_buffer.ts";
import { WriteBatch } from "../buffers/write_batch.ts";

/**
 * What one read takes at most: the payload of exactly two full frames between
 * own ends. A whole buffer would leave a crumb of some 60 bytes behind each
 * two, and that in a frame, a packet and a write of its own.
 */
export const READ_BYTES_MAX: number = 2 *
  (LARGE_FRAME_SIZE - DATA_HEAD_BYTES_MAX);

/**
 * A chunk of about one TLS record is a piece of bulk, and the next piece may be
 * here already. Larger ones come from whoever reads much at once.
 */
export const PIECE_BYTES = { min: 8 * 1024, max: 16 * 1024 } as const;

/** Pieces leave without waiting for more once they make a frame. */
export const GATHERED_BYTES: number = 56 * 1024;

/**
 * Microtasks that a piece waits for the one behind it. The agent's link gives
 * one TLS record a read, and a read of what is here already takes the platform
 * about five of them: so a frame of four records is one write and not four.
 * Nothing that is still under way is waited for.
 */
const GATHERING_MICROTASKS = 8;

/**
 * Bytes for a peer that takes none which are thrown away in one turn of the
 * event loop. Somebody may have bytes without end (a bench target, a copy of
 * `/dev/zero`); without a pause he would keep the loop to himself, and what says
 * that the connection is over comes through the loop.
 */
export const DROPPED_BYTES_PER_TURN: number = 1024 * 1024;

/** What else a {@linkcode SocketConduit} can be told. */
export interface SocketConduitOptions {
  /**
   * The first read, when it was made before the conduit existed: delivered
   * first, and its buffer taken over.
   */
  readonly first?: { readonly reader: ReadBuffer; readonly bytes: number };
}

/** For whoever reads from a socket before it becomes a conduit. */
export function conduitReader(): ReadBuffer {
  return new ReadBuffer(READ_BYTES_MAX);
}

/** See the module description. */
export class SocketConduit implements Conduit {
  readonly datagrams = false;

  readonly #socket: ByteSocket;
  /** Bytes of the first read that are still to be delivered. */
  #firstBytes: number;
  #events: ConduitEvents | undefined;

  // Reading. `#unconsumed` is what was delivered and not yet passed on.
  readonly #reader: ReadBuffer;
  #unconsumed = 0;
  #isReading = false;
  #isDelivering = false;
  #peerEnded = false;

  // Writing.
  readonly #batch = new WriteBatch();
  #inFlight: Uint8Array<ArrayBuffer> | undefined;
  #inFlightOffset = 0;
  #flushScheduled = false;
  /** Microtasks that a scheduled flush still waits. */
  #patience = 0;
  #wantsRoom = false;
  /** Dropped in this turn of the event loop. */
  #droppedBytes = 0;
  #sending: "open" | "ending" | "closing" | "ended" | "broken" = "open";

  #end: ConduitEnd | undefined;
  #closeReported = false;

  constructor(socket: ByteSocket, options: SocketConduitOptions = {}) {
    this.#socket = socket;
    this.#firstBytes = options.first?.bytes ?? 0;
    this.#reader = options.first?.reader ?? conduitReader();
  }

  /** Who is at the other end; for logs. */
  get remoteAddress(): string {
    return this.#socket.remoteAddress;
  }

  attach(events: ConduitEvents): void {
    if (this.#events !== undefined) {
      throw new TypeError("Cannot attach to a conduit twice");
    }
    this.#events = events;
    // Not in this turn: the caller may not be ready to hear anything yet.
    if (this.#firstBytes > 0) queueMicrotask(() => this.#deliverFirst());
    else this.#read();
  }

  write(chunk: Uint8Array): number {
    // The bytes go nowhere, and `onClose` says so.
    if (this.#end !== undefined) return 0;
    if (this.#sending === "broken") return this.#drop(chunk.length);
    if (this.#sending !== "open") {
      throw new TypeError("Cannot write to a conduit after its end");
    }
    const taken = this.#batch.append(chunk);
    if (taken < chunk.length) this.#wantsRoom = true;
    this.#scheduleFlush(this.#isPiece(chunk) ? GATHERING_MICROTASKS : 0);
    return taken;
  }

  end(): void {
    if (this.#sending !== "open") return;
    this.#sending = "ending";
    this.#scheduleFlush(0);
  }

  reset(reason: string, kind: "reset" | "lost" = "reset"): void {
    if (this.#end !== undefined) return;
    this.#socket.reset();
    this.#close({ kind, reason });
  }

  consumed(bytes: number): void {
    if (bytes > this.#unconsumed) {
      throw new RangeError(
        `Cannot consume ${bytes} bytes: ${this.#unconsumed} were delivered`,
      );
    }
    this.#unconsumed -= bytes;
    // While a chunk is being delivered, its buffer is still in use.
    if (this.#unconsumed === 0 && !this.#isDelivering) this.#read();
  }

  // Reading ------------------------------------------------------------------

  #deliverFirst(): void {
    if (this.#end !== undefined) return;
    const bytes = this.#firstBytes;
    this.#firstBytes = 0;
    this.#deliver(this.#reader.buffer.subarray(0, bytes));
  }

  #read(): void {
    if (this.#end !== undefined || this.#isReading || this.#peerEnded) return;
    this.#isReading = true;
    this.#socket.read(this.#reader.buffer)
      .then(this.#onRead, this.#onReadError);
  }

  // Kept, because there is always a read under way; what concerns writing is
  // made when it is needed, for connections that only wait are many.
  readonly #onRead = (count: number | null) => {
    this.#isReading = false;
    try {
      if (this.#end !== undefined) this.#settle();
      else if (count === null) this.#onPeerEnd();
      else this.#deliver(this.#reader.buffer.subarray(0, count));
    } catch (error) {
      this.#onFault(error);
    }
  };

  readonly #onReadError = (error: unknown) => {
    this.#isReading = false;
    if (this.#end !== undefined) this.#settle();
    else this.#close(endOf(error));
  };

  /** A slip of ours, or of who hears the events, costs this conduit. */
  #onFault(error: unknown): void {
    reportInternalError("conduit", error);
    guarded("conduit", () => this.reset(INTERNAL_ERROR, "lost"));
  }

  #deliver(chunk: Uint8Array): void {
    this.#unconsumed += chunk.length;
    this.#isDelivering = true;
    this.#events!.onData(chunk);
    this.#isDelivering = false;
    this.#reader.adapt(chunk.length);
    if (this.#unconsumed === 0) this.#read();
    // A stalled conduit holds no read buffer.
    if (!this.#isReading) this.#reader.release();
  }

  #onPeerEnd(): void {
    this.#peerEnded = true;
    this.#reader.release();
    if (this.#sending === "broken") return this.#close(UNHEARD);
    this.#events!.onEnd();
    if (this.#sending === "ended") this.#close({ kind: "clean" });
  }

  // Writing ------------------------------------------------------------------

  #isPiece({ length }: Uint8Array): boolean {
    return length >= PIECE_BYTES.min && length <= PIECE_BYTES.max &&
      this.#batch.pendingBytes < GATHERED_BYTES;
  }

  /**
   * One microtask later, so that all writes of this turn leave together, and
   * `patience` more. What is written meanwhile decides anew.
   */
  #scheduleFlush(patience: number): void {
    this.#patience = patience;
    if (this.#flushScheduled || this.#inFlight !== undefined) return;
    this.#flushScheduled = true;
    const turn = () => {
      if (this.#patience-- > 0) queueMicrotask(turn);
      else this.#flush();
    };
    queueMicrotask(turn);
  }

  #flush(): void {
    try {
      this.#flushNow();
    } catch (error) {
      this.#onFault(error);
    }
  }

  #flushNow(): void {
    this.#flushScheduled = false;
    if (this.#end !== undefined || this.#sending === "broken") return;
    const batch = this.#batch.take();
    if (batch === undefined) {
      if (this.#sending === "ending") this.#closeWrite();
      return;
    }
    this.#inFlight = batch;
    this.#inFlightOffset = 0;
    this.#send(batch);
    this.#offerRoom();
  }

  #send(bytes: Uint8Array): void {
    this.#socket.write(bytes).then(
      (count) => this.#onWritten(count),
      (error) => this.#onWriteError(error),
    );
  }

  #onWritten(count: number): void {
    const batch = this.#inFlight!;
    this.#inFlightOffset += count;
    if (this.#end === undefined && this.#inFlightOffset < batch.length) {
      // A socket may take a part only.
      return this.#send(batch.subarray(this.#inFlightOffset));
    }
    this.#landed();
    if (this.#end !== undefined) this.#settle();
    else this.#flush();
  }

  /**
   * The peer takes no more bytes. What it sent before is still in the kernel
   * and is delivered first: a server that answers early and closes would
   * otherwise lose its answer (as kube-apiserver does to an upload it refuses).
   */
  #onWriteError(error: unknown): void {
    this.#landed();
    if (this.#end !== undefined) return this.#settle();
    this.#sending = "broken";
    this.#batch.drop();
    if (this.#peerEnded) return this.#close(endOf(error));
    this.#offerRoom();
  }

  #offerRoom(): void {
    if (!this.#wantsRoom) return;
    this.#wantsRoom = false;
    try {
      this.#events?.onWritable();
    } catch (error) {
      this.#onFault(error);
    }
  }

  #landed(): void {
    this.#batch.recycle();
    this.#inFlight = undefined;
  }

  /** Takes what nobody will get, see {@linkcode DROPPED_BYTES_PER_TURN}. */
  #drop(bytes: number): number {
    if (this.#droppedBytes === 0) setImmediate(() => this.#dropFurther());
    const room = DROPPED_BYTES_PER_TURN - this.#droppedBytes;
    const taken = Math.min(room, bytes);
    this.#droppedBytes += taken;
    if (taken < bytes) this.#wantsRoom = true;
    return taken;
  }

  #dropFurther(): void {
    this.#droppedBytes = 0;
    if (this.#end === undefined) this.#offerRoom();
  }

  #closeWrite(): void {
    if (this.#peerEnded && this.#socket.closesInOrder) {
      this.#sending = "ended";
      return this.#close({ kind: "clean" });
    }
    this.#sending = "closing";
    this.#socket.closeWrite().then(() => {
      this.#sending = "ended";
      if (this.#peerEnded) this.#close({ kind: "clean" });
    }, (error) => {
      this.#sending = "broken";
      if (this.#peerEnded) this.#close(endOf(error));
    });
  }

  // The end ------------------------------------------------------------------

  #close(end: ConduitEnd): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#batch.drop();
    this.#socket.close();
    queueMicrotask(() => this.#settle());
  }

  /** Reports the end once the kernel has let go of both buffers. */
  #settle(): void {
    if (this.#isReading || this.#inFlight !== undefined) return;
    if (this.#closeReported) return;
    this.#closeReported = true;
    this.#reader.release();
    guarded("conduit", () => this.#events?.onClose(this.#end!));
  }
}

/** The peer ended in order, but did not hear us out. */
export const UNHEARD: ConduitEnd = {
  kind: "reset",
  reason: "connection closed by peer while bytes were on their way to it",
};
