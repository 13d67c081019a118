/**
 * The one loop that joins two conduits, whatever carries them.
 *
 * Each direction is a {@linkcode Pump}. This module decides what the end of one
 * conduit means for the other (promise 1 of ARCHITECTURE.md):
 *
 * - an end (half-close) is passed on behind everything that came before it, and
 *   the other direction goes on;
 * - a reset resets the other conduit, a loss is passed on as a loss; what is
 *   queued is dropped, because its reader learns that bytes are missing;
 * - neither ever turns into an end.
 *
 * It sets no timers: the caller decides how long a half-closed or stalled
 * conduit may last.
 *
 * @module
 */

import type { Clock } from "../sync/clock.ts";
import type { Conduit, ConduitEnd } from "./conduit.ts";
import { INTERNAL_ERROR, reportFault } from "../sync/faults.ts";
import { Pump, type PumpOwner } from "./pump.ts";

/**
 * Most that may be queued in one direction. No conduit delivers that much
 * ahead: the largest stream window and one gathered message are 16 MiB each.
 */
const QUEUE_BYTES_MAX = 32 * 1024 * 1024;

/** Options of {@linkcode transfer}. */
export interface TransferOptions {
  /** Measures the duration; without it that is 0. */
  readonly clock?: Clock;
  /** See {@linkcode QUEUE_BYTES_MAX}, the default. */
  readonly queueBytesMax?: number;
}

/** Facts when both conduits are closed. */
export interface TransferResult {
  /** The first end that was not clean, or a clean one. */
  readonly end: ConduitEnd;
  /** How each conduit ended. The one that we reset reports that itself. */
  readonly endA: ConduitEnd;
  readonly endB: ConduitEnd;
  /** Bytes that the receiving conduit took. */
  readonly bytesAToB: number;
  readonly bytesBToA: number;
  /** Datagrams that found the receiving conduit full, both directions. */
  readonly droppedDatagrams: number;
  readonly durationMs: number;
}

/** Two conduits that are joined. */
export interface Joined {
  /** Bytes that were taken so far, both ways together. */
  readonly bytes: number;
  /** Resets whichever of the two is not closed. @param reason For people. */
  giveUp(reason: string): void;
}

/**
 * Moves bytes both ways until both conduits are closed.
 *
 * Attaches to both before it returns.
 *
 * @returns Always fulfilled; how it ended is in the result.
 * @throws {TypeError} If one conduit carries datagrams and the other does not:
 *   the borders of datagrams would be lost.
 */
export function transfer(
  a: Conduit,
  b: Conduit,
  options: TransferOptions = {},
): Promise<TransferResult> {
  const { promise, resolve } = Promise.withResolvers<TransferResult>();
  new Transfer(a, b, options, { onOver: resolve }).start();
  return promise;
}

/**
 * As {@linkcode transfer}, for callers that do not wait for the end:
 * connections are many, and a promise for each would cost memory for its whole
 * life.
 *
 * @param onOver Called when both are closed.
 * @param onHalfClosed Called when the first of the two has ended its data; the
 *   other one may go on without limit.
 * @throws {TypeError} As there.
 */
export function join(
  a: Conduit,
  b: Conduit,
  onOver?: (result: TransferResult) => void,
  onHalfClosed?: (joined: Joined) => void,
): Joined {
  const joined = new Transfer(a, b, {}, { onOver, onHalfClosed });
  joined.start();
  return joined;
}

/** Callbacks of a transfer. */
interface Listeners {
  readonly onOver?: ((result: TransferResult) => void) | undefined;
  readonly onHalfClosed?: ((joined: Joined) => void) | undefined;
}

function assertSameKind(a: Conduit, b: Conduit): void {
  if (a.datagrams !== b.datagrams) {
    throw new TypeError(
      "Cannot transfer: one conduit carries datagrams, the other a byte stream",
    );
  }
}

class Transfer implements PumpOwner, Joined {
  readonly #aToB: Pump;
  readonly #bToA: Pump;
  readonly #clock: Clock | undefined;
  readonly #startMs: number;
  readonly #onOver: ((result: TransferResult) => void) | undefined;
  readonly #onHalfClosed: ((joined: Joined) => void) | undefined;
  #endA: ConduitEnd | undefined;
  #endB: ConduitEnd | undefined;
  #cause: ConduitEnd | undefined;

  constructor(
    private readonly a: Conduit,
    private readonly b: Conduit,
    options: TransferOptions,
    { onOver, onHalfClosed }: Listeners,
  ) {
    assertSameKind(a, b);
    const limit = options.queueBytesMax ?? QUEUE_BYTES_MAX;
    [this.#aToB, this.#bToA] = Pump.pair(a, b, limit, this);
    this.#clock = options.clock;
    this.#startMs = options.clock?.now() ?? 0;
    this.#onOver = onOver;
    this.#onHalfClosed = onHalfClosed;
  }

  get bytes(): number {
    return this.#aToB.bytes + this.#bToA.bytes;
  }

  start(): void {
    this.a.attach(this.#aToB);
    this.b.attach(this.#bToA);
  }

  onEnded(pump: Pump): void {
    const other = pump === this.#aToB ? this.#bToA : this.#aToB;
    if (!other.sourceHasEnded) this.#onHalfClosed?.(this);
  }

  /** Passes the end of one conduit on to the other, unless it was in order. */
  onClosed(pump: Pump, end: ConduitEnd): void {
    if (end.kind !== "clean") this.#cause ??= end;
    if (pump === this.#aToB) this.#endA = end;
    else this.#endB = end;
    // The other one may close before this returns: its end tells of both.
    if (this.#endA === undefined) passOn(end, this.a);
    else if (this.#endB === undefined) passOn(end, this.b);
    else this.#tell(this.#endA, this.#endB);
  }

  giveUp(reason: string): void {
    this.#cause ??= { kind: "reset", reason };
    this.#aToB.stop();
    this.#bToA.stop();
    if (this.#endA === undefined) this.a.reset(reason);
    if (this.#endB === undefined) this.b.reset(reason);
  }

  /** An internal error costs these two conduits only. */
  faulted(error: unknown): void {
    reportFault("conduit", error);
    this.#cause ??= { kind: "lost", reason: INTERNAL_ERROR };
    this.#aToB.stop();
    this.#bToA.stop();
    if (this.#endA === undefined) lose(this.a);
    if (this.#endB === undefined) lose(this.b);
  }

  #tell(endA: ConduitEnd, endB: ConduitEnd): void {
    this.#onOver?.({
      end: this.#cause ?? endA,
      endA,
      endB,
      bytesAToB: this.#aToB.bytes,
      bytesBToA: this.#bToA.bytes,
      droppedDatagrams: this.#aToB.droppedDatagrams +
        this.#bToA.droppedDatagrams,
      durationMs: (this.#clock?.now() ?? 0) - this.#startMs,
    });
  }
}

/** One conduit closed with `end`; a clean one has passed on its end before. */
function passOn(end: ConduitEnd, other: Conduit): void {
  if (end.kind !== "clean") other.reset(end.reason, end.kind);
}

/**
 * A half-closed conduit may refuse to be ended; the other one is ended
 * nevertheless.
 */
function lose(conduit: Conduit): void {
  try {
    conduit.reset(INTERNAL_ERROR, "lost");
  } catch (error) {
    reportFault("conduit", error);
  }
}
