/**
 * Joins an HTTP/2 engine, which knows neither sockets nor clocks, to a
 * transport and timers.
 *
 * One write is in flight; whatever the engine produces meanwhile leaves with
 * the next one. The first output of a turn schedules one microtask, so all that
 * is said in a turn leaves in one system call and few TLS records. There is one
 * timer per connection, and it moves only when a deadline becomes earlier.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";
import {
  INTERNAL_ERROR,
  reportInternalError,
} from "../../platform/errors/internal_errors.ts";
import type { Transport } from "../stream/transport.ts";

/** The part of `Connection` (proto/streams) that is driven here. */
export interface Http2Engine {
  setOutputListener(listener: () => void): void;
  receive(chunk: Uint8Array): void;
  receiveEnd(): void;
  transportClosed(error?: Error): void;
  takeOutput(): Uint8Array | undefined;
  outputWritten(): void;
  /** Nothing more will be said; with a write in flight: nor waited for. */
  readonly isFinished: boolean;
  /** What is said now can wait, and is for nobody if the peer leaves. */
  readonly isDeserted: boolean;
  /** On the clock of the timers; `Infinity` when there is none. */
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
 * How much of what is still under way is read meanwhile. On a long, fast line
 * that is a window or two; who sends more does not listen, and is hung up on.
 */
export const LINGER_BYTES_MAX: number = 1024 * 1024;

/**
 * How long replies wait to see whether the client leaves. grpc-go sends a PING
 * behind each call's last bytes and a program that calls once hangs up right
 * behind it: to answer is a failed write, the dearest thing there is.
 */
export const DESERTED_HOLD_MS = 5;

/**
 * Runs `connection` over `transport` until both are over.
 *
 * The caller has called, or will call, `connection.start()`.
 */
export function driveHttp2(
  transport: Transport,
  connection: Http2Engine,
  timers: Timers,
): void {
  new Http2Driver(transport, connection, timers).start();
}

class Http2Driver {
  readonly #transport: Transport;
  readonly #connection: Http2Engine;
  readonly #timers: Timers;
  #state: "running" | "lingering" | "closed" = "running";
  #lingered = 0;
  #isWriting = false;
  #flushScheduled = false;
  /** Runs while output is held back, see {@linkcode DESERTED_HOLD_MS}. */
  #hold: Timer | undefined;
  #timer: Timer | undefined;
  #timerDueMs = Infinity;
  /** Why it had to end, where it was a slip of ours. */
  #fault: Error | undefined;

  constructor(transport: Transport, connection: Http2Engine, timers: Timers) {
    this.#transport = transport;
    this.#connection = connection;
    this.#timers = timers;
  }

  start(): void {
    this.#transport.start({
      onChunk: (chunk) => {
        try {
          this.#onChunk(chunk);
        } catch (error) {
          this.#onFault(error);
        }
      },
      onEnd: () => {
        try {
          this.#onEnd();
        } catch (error) {
          this.#onFault(error);
        }
      },
      onClose: (error) => {
        try {
          this.#onClose(error);
        } catch (error) {
          reportInternalError("http2", error);
        }
      },
    });
    // Behind the transport: where the peer's first bytes are there already,
    // the answer to them leaves together with what the engine says by itself.
    this.#connection.setOutputListener(() => this.#scheduleFlush());
    // The engine may have spoken before it had a listener.
    this.#scheduleFlush();
  }

  /** A slip of ours ends this connection; see `Connection` for its streams. */
  #onFault(error: unknown): void {
    reportInternalError("http2", error);
    this.#fault = new Error(INTERNAL_ERROR);
    this.#transport.close();
  }

  #onChunk(chunk: Uint8Array): void {
    if (this.#state !== "running") return this.#onLate(chunk.length);
    this.#connection.receive(chunk);
    if (this.#hold !== undefined && !this.#connection.isDeserted) {
      this.#endHold();
      queueMicrotask(this.#flush);
    }
    this.#afterEvent();
  }

  #onEnd(): void {
    if (this.#state === "lingering") return this.#transport.close();
    this.#connection.receiveEnd();
    if (this.#hold !== undefined) this.#transport.close();
    else this.#afterEvent();
  }

  #onLate(bytes: number): void {
    this.#lingered += bytes;
    if (this.#lingered > LINGER_BYTES_MAX) this.#transport.close();
  }

  #scheduleFlush(): void {
    if (this.#flushScheduled || this.#isWriting) return;
    this.#flushScheduled = true;
    if (!this.#connection.isDeserted) return queueMicrotask(this.#flush);
    this.#hold = this.#timers.after(DESERTED_HOLD_MS, this.#flush);
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
      const batch = this.#connection.takeOutput();
      if (batch !== undefined) {
        this.#isWriting = true;
        this.#transport.write(batch, this.#onWritten);
      }
      this.#afterEvent();
    } catch (error) {
      this.#onFault(error);
    }
  };

  readonly #onWritten = () => {
    this.#isWriting = false;
    if (this.#state === "closed") return;
    try {
      this.#connection.outputWritten();
    } catch (error) {
      return this.#onFault(error);
    }
    this.#flush();
  };

  #afterEvent(): void {
    if (this.#state !== "running") return;
    if (!this.#connection.isFinished) return this.#arm();
    // Finished with a write in flight: the engine has given the peer up.
    if (this.#isWriting) this.#transport.close();
    else this.#finish();
  }

  /** Everything was said: end our side, and give the peer time to end its. */
  #finish(): void {
    this.#state = "lingering";
    this.#timer?.cancel();
    this.#timer = this.#timers.after(LINGER_MS, () => this.#transport.close());
    this.#transport.closeWrite();
  }

  /** A deadline that moved away leaves the timer alone: it fires and re-arms. */
  #arm(): void {
    const deadlineMs = this.#connection.nextDeadlineMs;
    if (deadlineMs >= this.#timerDueMs) return;
    this.#timer?.cancel();
    this.#timerDueMs = deadlineMs;
    const delayMs = Math.max(0, deadlineMs - this.#timers.now());
    this.#timer = this.#timers.after(delayMs, this.#onTimer);
  }

  readonly #onTimer = () => {
    this.#timerDueMs = Infinity;
    if (this.#state !== "running") return;
    try {
      if (this.#connection.nextDeadlineMs <= this.#timers.now()) {
        this.#connection.onDeadline();
      }
      this.#afterEvent();
    } catch (error) {
      this.#onFault(error);
    }
  };

  #onClose(error: Error | undefined): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#endHold();
    this.#timer?.cancel();
    this.#connection.transportClosed(this.#fault ?? error);
  }
}
