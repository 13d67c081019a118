/**
 * One connection to an agent's bench target: a conduit whose other end is this
 * very object. It echoes, makes or counts bytes, at the pace at which they are
 * taken, and holds no more than its window.
 *
 * @module
 */

import {
  benchAnswer,
  type BenchHost,
  BenchLineReader,
  type BenchService,
  discardReport,
  nextReportAt,
  parseBenchRequest,
} from "../../proto/link/bench_wire.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
} from "../../proto/transfer/conduit.ts";
import { PooledQueue } from "../../proto/transfer/pooled_queue.ts";

/** Bytes that are echoed or produced ahead of the reader. */
export const BENCH_WINDOW_BYTES = 256 * 1024;

/** How long one connection may last, so that a forgotten one ends. */
export const BENCH_LIFETIME_MS = 120_000;

/** What `source` sends, over and over. */
const PATTERN = new Uint8Array(64 * 1024);

export class BenchConduit implements Conduit {
  readonly datagrams = false;
  readonly #lifetime: Timer;
  readonly #request = new BenchLineReader();
  readonly #outbox = new PooledQueue();
  #service: BenchService | undefined;
  #events: ConduitEvents | undefined;
  /** Delivered and not taken yet. */
  #unconsumed = 0;
  #wantsRoom = false;
  #isScheduled = false;
  /** For `discard`. */
  #received = 0;
  #reportAt = nextReportAt(0);
  #state: "open" | "callerEnded" | "closed" = "open";

  /** @param onOver Called once, when the connection is over. */
  constructor(
    private readonly host: BenchHost,
    timers: Timers,
    private readonly onOver: () => void,
  ) {
    this.#lifetime = timers.after(BENCH_LIFETIME_MS, () =>
      this.reset(
        `a bench connection lasts ${BENCH_LIFETIME_MS / 1000} s at most`,
      ));
  }

  attach(events: ConduitEvents): void {
    if (this.#events !== undefined) {
      throw new TypeError("Cannot attach to a conduit twice");
    }
    this.#events = events;
    this.#schedule();
  }

  write(chunk: Uint8Array): number {
    if (this.#state === "callerEnded") {
      throw new TypeError("Cannot write to a conduit after its end");
    }
    if (this.#state === "closed") return 0;
    if (this.#service !== undefined) return this.#serve(this.#service, chunk);
    const line = this.#request.push(chunk);
    if (line === undefined) return chunk.length;
    const service = parseBenchRequest(line.text ?? "");
    if (service === undefined) {
      // Not inside the caller's call.
      queueMicrotask(() => this.reset("this is no request for a bench"));
      return chunk.length;
    }
    this.#service = service;
    this.#outbox.push(benchAnswer(this.host));
    this.#schedule();
    const rest = chunk.subarray(line.taken);
    return line.taken + (rest.length > 0 ? this.#serve(service, rest) : 0);
  }

  end(): void {
    if (this.#state === "open") this.#state = "callerEnded";
    this.#schedule();
  }

  reset(reason: string, kind: "reset" | "lost" = "reset"): void {
    this.#close({ kind, reason });
  }

  consumed(bytes: number): void {
    this.#unconsumed -= bytes;
    this.#schedule();
  }

  #serve(service: BenchService, chunk: Uint8Array): number {
    this.#schedule();
    switch (service) {
      case "discard":
        this.#received += chunk.length;
        return chunk.length;
      case "source":
        return chunk.length;
      case "echo": {
        const room = BENCH_WINDOW_BYTES - this.#outbox.bytes;
        const taken = Math.min(room, chunk.length);
        this.#outbox.push(chunk.subarray(0, taken));
        this.#wantsRoom = taken < chunk.length;
        return taken;
      }
    }
  }

  /** Events come from here alone, never from inside a call of the owner's. */
  #schedule(): void {
    if (this.#isScheduled || this.#isClosed()) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.#turn();
    });
  }

  #turn(): void {
    if (this.#events === undefined || this.#isClosed()) return;
    if (this.#service === "discard") this.#report();
    this.#empty();
    if (this.#service === "source" && this.#state === "open") this.#fill();
    if (this.#isClosed()) return;
    if (this.#wantsRoom && this.#outbox.bytes < BENCH_WINDOW_BYTES) {
      this.#wantsRoom = false;
      this.#events.onWritable();
    }
    if (this.#state !== "callerEnded" || this.#outbox.bytes > 0) return;
    this.#events.onEnd();
    this.#close({ kind: "clean" });
  }

  /** At most one report waits: a slow reader gets fewer of them. */
  #report(): void {
    if (this.#outbox.bytes > 0 || this.#unconsumed > 0) return;
    const isDue = this.#received >= this.#reportAt ||
      this.#state === "callerEnded";
    if (!isDue) return;
    this.#reportAt = nextReportAt(this.#received);
    this.#outbox.push(discardReport(this.#received));
  }

  #empty(): void {
    const outbox = this.#outbox;
    while (outbox.bytes > 0 && this.#unconsumed < BENCH_WINDOW_BYTES) {
      const { length } = outbox.peek();
      this.#deliver(outbox.peek());
      if (this.#isClosed()) return;
      outbox.drop(length);
    }
  }

  /** One window at most: others want their turn as well. */
  #fill(): void {
    for (let at = 0; at < BENCH_WINDOW_BYTES; at += PATTERN.length) {
      if (this.#isClosed() || this.#unconsumed >= BENCH_WINDOW_BYTES) return;
      this.#deliver(PATTERN);
    }
  }

  #deliver(chunk: Uint8Array): void {
    this.#unconsumed += chunk.length;
    this.#events!.onData(chunk);
  }

  /** A method, because calls in between change what a type guard remembers. */
  #isClosed(): boolean {
    return this.#state === "closed";
  }

  #close(end: ConduitEnd): void {
    if (this.#isClosed()) return;
    this.#state = "closed";
    this.#lifetime.cancel();
    this.#outbox.clear();
    this.onOver();
    this.#events?.onClose(end);
  }
}
