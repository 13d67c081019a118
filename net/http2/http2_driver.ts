/**
 * Joins an HTTP/2 engine, which knows neither sockets nor clocks, to a stream
 * and timers.
 *
 * One write is in flight; output that the engine produces meanwhile leaves with
 * the next write. The first output of a turn schedules one microtask, so all
 * output of a turn leaves in one system call and few TLS records. There is one
 * timer per connection, and it moves only when a deadline becomes earlier.
 *
 * It never stops reading: HTTP/2's own windows bound what a peer may send.
 *
 * Reading order: `start`, `onReady`, `#read`; `#flush`, `#send`, `#onWritten`;
 * `#afterEvent`, `#finish`, `#close`.
 *
 * @module
 */

import { BUFFER_BYTES_MAX } from "../../proto/bytes/buffer_pool.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import {
  guarded,
  INTERNAL_ERROR,
  reportInternalError,
} from "../../platform/errors/internal_errors.ts";
import {
  endOf,
  type Stream,
  type StreamUser,
  WOULD_BLOCK,
} from "../stream/stream.ts";
import { TurnShare } from "../poll/turn_share.ts";

/** The part of `Connection` (proto/streams) that is driven here. */
export interface Http2Engine {
  setOutputListener(listener: () => void): void;
  receive(chunk: Uint8Array): void;
  receiveEnd(): void;
  transportClosed(error?: Error): void;
  takeOutput(): Uint8Array | undefined;
  outputWritten(): void;
  /** No further write; a write in flight is not awaited either. */
  readonly isFinished: boolean;
  /** Output can wait now, and is useless if the peer leaves. */
  readonly isIdle: boolean;
  /** On the timers' clock; `Infinity` when there is none. */
  readonly nextDeadlineMs: number;
  onDeadline(): void;
}

/**
 * How long a finished connection waits for the peer's end of stream. Closing at
 * once would answer bytes still under way with RST, which can destroy our last
 * words (GOAWAY) in the peer's buffers.
 */
export const LINGER_MS = 1_000;

/**
 * How many bytes are still read meanwhile. On a long, fast line they are a
 * window or two; a peer that sends more does not read, and its connection is
 * closed.
 */
export const LINGER_BYTES_MAX: number = 1024 * 1024;

/**
 * How long replies wait to see whether the client leaves. grpc-go sends a PING
 * after each call's last bytes, and a program with a single call disconnects
 * right after it: the answer would be a failed write, which is very expensive.
 */
export const IDLE_HOLD_MS = 5;

/** One for all: a chunk is dealt with before the next read. */
const shared = new Uint8Array(BUFFER_BYTES_MAX);

/** The part of it that was read into last: most connections read as much. */
let room = shared;

const NOTHING = new Uint8Array(0);

/**
 * Runs `connection` over `stream` until both are over.
 *
 * The caller has called, or will call, `connection.start()`.
 */
export function driveHttp2(
  stream: Stream,
  connection: Http2Engine,
  timers: Timers,
): void {
  new Http2Driver(stream, connection, timers).start();
}

class Http2Driver implements StreamUser {
  /** How much is dealt with before others have a turn. */
  readonly #share = new TurnShare();
  /** Lingering: our side has ended, and the peer is given time to end its. */
  #state: "running" | "lingering" | "closed" = "running";
  #peerEnded = false;
  #lingered = 0;
  #isWriting = false;
  /** What the stream had no room for. */
  #rest: Uint8Array<ArrayBuffer> | undefined;
  /** Why nothing can be written any more. */
  #writeError: unknown;
  #flushScheduled = false;
  /** Runs while output is held back, see {@linkcode IDLE_HOLD_MS}. */
  #hold: Timer | undefined;
  #timer: Timer | undefined;
  #timerDueMs = Infinity;

  constructor(
    private readonly stream: Stream,
    private readonly connection: Http2Engine,
    private readonly timers: Timers,
  ) {}

  start(): void {
    this.stream.notify(this);
    // Not in this turn: the caller may not be ready for events yet.
    queueMicrotask(() => this.onReady(0));
    // After the handshake: if the peer's first bytes are there already, the
    // answer leaves together with the engine's own first output.
    this.connection.setOutputListener(() => this.#scheduleFlush());
    // The engine may have spoken before it had a listener.
    this.#scheduleFlush();
  }

  onReady(hint: number): void {
    if (this.#state === "closed") return;
    if (!this.stream.isOpen) return this.#close(undefined);
    try {
      if (hint !== 0 && this.#rest !== undefined) this.#send(this.#rest);
      this.#read();
      this.#tryToClose();
    } catch (error) {
      this.#onFault(error);
    }
  }

  onFault(): void {
    this.#close(new Error(INTERNAL_ERROR));
  }

  /**
   * An internal error ends this connection; see `Connection` for its streams.
   */
  #onFault(error: unknown): void {
    reportInternalError("http2", error);
    this.onFault();
  }

  // Reading ------------------------------------------------------------------

  #read(): void {
    while (this.#state !== "closed" && !this.#peerEnded) {
      const count = this.#readOnce();
      if (count === WOULD_BLOCK) return this.#onDrained();
      if (count === 0) return this.#onPeerEnd();
      const startMs = this.timers.now();
      this.#onChunk(shared.subarray(0, count));
      const isTurnOver = this.#share.took(count, this.timers.now() - startMs);
      if (isTurnOver) return this.stream.goOn();
    }
  }

  #readOnce(): number {
    try {
      return this.stream.read(this.#room);
    } catch (error) {
      this.#fail(error);
      return WOULD_BLOCK;
    }
  }

  /** No more than may be dealt with before others have a turn. */
  get #room(): Uint8Array<ArrayBuffer> {
    const bytes = Math.min(this.#share.bytes, shared.length);
    if (room.length !== bytes) room = shared.subarray(0, bytes);
    return room;
  }

  #onDrained(): void {
    if (this.#writeError !== undefined) this.#fail(this.#writeError);
  }

  #onChunk(chunk: Uint8Array): void {
    if (this.#state !== "running") return this.#onLate(chunk.length);
    this.connection.receive(chunk);
    if (this.#hold !== undefined && !this.connection.isIdle) {
      this.#endHold();
      queueMicrotask(this.#flush);
    }
    this.#afterEvent();
  }

  #onLate(bytes: number): void {
    this.#lingered += bytes;
    if (this.#lingered > LINGER_BYTES_MAX) this.#close(undefined);
  }

  #onPeerEnd(): void {
    this.#peerEnded = true;
    if (this.#state === "lingering") return this.#close(undefined);
    this.connection.receiveEnd();
    if (this.#hold !== undefined) this.#close(undefined);
    else this.#afterEvent();
    if (this.#writeError !== undefined) this.#fail(this.#writeError);
  }

  // Writing ------------------------------------------------------------------

  #scheduleFlush(): void {
    if (this.#flushScheduled || this.#isWriting) return;
    this.#flushScheduled = true;
    if (!this.connection.isIdle) return queueMicrotask(this.#flush);
    this.#hold = this.timers.after(IDLE_HOLD_MS, this.#flush);
  }

  #endHold(): void {
    this.#hold?.cancel();
    this.#hold = undefined;
  }

  readonly #flush = () => {
    this.#flushScheduled = false;
    this.#hold = undefined;
    if (this.#isWriting || this.#state !== "running") return;
    try {
      const batch = this.connection.takeOutput();
      if (batch !== undefined) {
        this.#isWriting = true;
        this.#send(batch as Uint8Array<ArrayBuffer>);
      }
      this.#afterEvent();
    } catch (error) {
      this.#onFault(error);
    }
  };

  #send(bytes: Uint8Array<ArrayBuffer>): void {
    let rest = bytes;
    const { turn } = this.stream;
    try {
      while (rest.length > 0) {
        const count = this.stream.write(rest);
        if (count === 0) {
          this.#rest = rest;
          return;
        }
        rest = count === rest.length ? NOTHING : rest.subarray(count);
        turn.moved(count);
      }
      if (!this.stream.flush()) {
        this.#rest = rest;
        return;
      }
    } catch (error) {
      return this.#onWriteError(error);
    }
    this.#rest = undefined;
    // Not in this call, or write and callback would call each other without
    // end; and after enough bytes the event loop has its turn.
    if (turn.isOver) turn.later(this.#onWritten);
    else queueMicrotask(this.#onWritten);
  }

  readonly #onWritten = () => {
    if (this.#state === "closed") return;
    this.#isWriting = false;
    try {
      this.connection.outputWritten();
    } catch (error) {
      return this.#onFault(error);
    }
    this.#flush();
  };

  /**
   * The peer takes no more bytes. What it sent before is in the kernel, and is
   * read first.
   */
  #onWriteError(error: unknown): void {
    this.#rest = undefined;
    if (this.#peerEnded) return this.#fail(error);
    this.#writeError = error;
    this.stream.goOn();
  }

  // The end ------------------------------------------------------------------

  #afterEvent(): void {
    if (this.#state !== "running") return;
    if (!this.connection.isFinished) return this.#arm();
    // Finished with a write in flight: the engine has given the peer up.
    if (this.#isWriting) this.#close(undefined);
    else this.#finish();
  }

  /** Everything was sent: end our side, and give the peer time to end its. */
  #finish(): void {
    this.#state = "lingering";
    this.#timer?.cancel();
    this.#timer = this.timers.after(LINGER_MS, () => this.#close(undefined));
    // The second to end need only close: one call less.
    if (this.#peerEnded && this.stream.closesInOrder) {
      return this.#close(undefined);
    }
    try {
      this.stream.closeWrite();
    } catch (error) {
      // A peer that ended its side and is gone needs no end from us.
      if (this.#peerEnded) return this.#close(undefined);
      return this.#onWriteError(error);
    }
    this.#tryToClose();
  }

  /** The end: both sides have ended, and our end is on its way. */
  #tryToClose(): void {
    if (this.#state !== "lingering" || !this.#peerEnded) return;
    try {
      if (this.stream.flush()) this.#close(undefined);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** A deadline that moved away leaves the timer alone: it fires and re-arms. */
  #arm(): void {
    const deadlineMs = this.connection.nextDeadlineMs;
    if (deadlineMs >= this.#timerDueMs) return;
    this.#timer?.cancel();
    this.#timerDueMs = deadlineMs;
    const delayMs = Math.max(0, deadlineMs - this.timers.now());
    this.#timer = this.timers.after(delayMs, this.#onTimer);
  }

  readonly #onTimer = () => {
    this.#timerDueMs = Infinity;
    if (this.#state !== "running") return;
    try {
      if (this.connection.nextDeadlineMs <= this.timers.now()) {
        this.connection.onDeadline();
      }
      this.#afterEvent();
    } catch (error) {
      this.#onFault(error);
    }
  };

  #fail(error: unknown): void {
    const end = endOf(error);
    const text = end.kind === "clean" ? "" : end.reason;
    this.#close(new Error(text, { cause: error }));
  }

  #close(error: Error | undefined): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#rest = undefined;
    this.#endHold();
    this.#timer?.cancel();
    this.stream.close();
    // Not in this turn: it may be closed from inside a call of the engine.
    queueMicrotask(() =>
      guarded("http2", () => this.connection.transportClosed(error))
    );
  }
}
