/**
 * How much received data may wait in the whole process.
 *
 * Windows bound what one stream and one connection may pin; their sum over all
 * connections is bounded here. Over the limit those streams are reset that have
 * made no progress for longest, so that a peer that opens many and reads none
 * costs itself its streams and nobody else the process.
 *
 * On the hot path it is one addition: the order of stalls is kept by a counter
 * that ticks with every progress, not by a clock, and the streams are only gone
 * through when the limit is passed.
 *
 * @module
 */

import { ErrorCode } from "../frames/wire_error.ts";
import type { ReceiveWindow } from "./flow_window.ts";

/**
 * The limit unless the process chooses another: as much as four connections
 * whose windows have all grown (`GROWN_OCTETS_MAX`) and are read by nobody.
 */
export const RECEIVE_BUDGET_OCTETS_DEFAULT: number = 256 * 1024 * 1024;

/**
 * Once it is passed, the budget is cleared down to this part of it: going
 * through all streams must be worth its while.
 */
export const CLEARED_SHARE = 3 / 4;

/** What the budget needs of a stream. */
export interface BudgetedStream {
  readonly receiveWindow: ReceiveWindow;
  /** When it last made progress, by the budget's count; kept for the budget. */
  progressTick: number;
  /** Resets the stream and tells its handlers why. */
  fail(code: number, reason: string): void;
}

/** A connection, as a place where streams are found. */
export interface BudgetMember {
  budgetedStreams(): Iterable<BudgetedStream>;
}

/** One per process, handed to every connection; see the module description. */
export class ReceiveBudget {
  readonly #limitOctets: number;
  readonly #members: Set<BudgetMember> = new Set();
  #octets = 0;
  #tick = 0;
  #resetStreams = 0;
  #isClearing = false;

  /** @param limitOctets Octets received and not consumed, of all streams. */
  constructor(limitOctets: number = RECEIVE_BUDGET_OCTETS_DEFAULT) {
    if (!(limitOctets > 0)) {
      throw new RangeError(`Cannot keep a budget of ${limitOctets} octets`);
    }
    this.#limitOctets = limitOctets;
  }

  /** Octets received and not consumed, now. */
  get octets(): number {
    return this.#octets;
  }

  /** How many streams were reset for it. */
  get resetStreams(): number {
    return this.#resetStreams;
  }

  /** Connections that take part. */
  get members(): number {
    return this.#members.size;
  }

  join(member: BudgetMember): void {
    this.#members.add(member);
  }

  leave(member: BudgetMember): void {
    this.#members.delete(member);
  }

  /**
   * `stream` has charged `octets` to its window. Over the limit streams are
   * reset before this returns, which may be this one.
   */
  received(stream: BudgetedStream, octets: number): void {
    // With nothing waiting it was not stalled: its wait begins here.
    if (stream.receiveWindow.outstanding === octets) {
      stream.progressTick = ++this.#tick;
    }
    this.#octets += octets;
    if (this.#octets > this.#limitOctets) this.#clear();
  }

  /** `stream` passed on `octets`. */
  consumed(stream: BudgetedStream, octets: number): void {
    stream.progressTick = ++this.#tick;
    this.#octets -= octets;
  }

  /** `stream` is over: nobody will consume what it had. Once per stream. */
  closed(stream: BudgetedStream): void {
    this.#octets -= stream.receiveWindow.outstanding;
  }

  #clear(): void {
    if (this.#isClearing) return;
    this.#isClearing = true;
    const reason = `Cannot keep the stream: ${this.#octets} octets wait in ` +
      `this process, wanted at most ${this.#limitOctets}, and none waits longer`;
    try {
      for (const stream of this.#byStall()) {
        if (this.#octets <= this.#limitOctets * CLEARED_SHARE) break;
        // A handler may have consumed or closed it meanwhile.
        if (stream.receiveWindow.outstanding === 0) continue;
        this.#resetStreams++;
        stream.fail(ErrorCode.ENHANCE_YOUR_CALM, reason);
      }
    } finally {
      this.#isClearing = false;
    }
  }

  /** All streams that hold something, the longest stalled first. */
  #byStall(): BudgetedStream[] {
    return [...this.#members]
      .flatMap((member) => [...member.budgetedStreams()])
      .filter(({ receiveWindow }) => receiveWindow.outstanding > 0)
      .sort((one, other) => one.progressTick - other.progressTick);
  }
}
