/**
 * How much received data may wait in the whole process.
 *
 * Windows bound what one stream and one connection may pin; their sum over all
 * connections is bounded here. Over the limit, streams without progress for the
 * longest time are reset, so that a peer that opens many and reads none loses
 * its own streams and no other peer is affected. A stream is reset, or one
 * conduit of a stream that carries many: the others have done nothing.
 *
 * On the hot path it is one addition: the order of stalls is kept by a counter
 * that ticks with every progress, not by a clock, and all are only gone through
 * when the limit is passed.
 *
 * @module
 */

/**
 * The limit unless the process chooses another: as much as four connections
 * whose windows have all grown (`GROWN_BYTES_MAX`) and are not read.
 */
const RECEIVE_BUDGET_BYTES_DEFAULT: number = 256 * 1024 * 1024;

/**
 * Once it is passed, the budget is cleared down to this part of it: going
 * through all streams must be worth its while.
 */
export const CLEARED_SHARE = 3 / 4;

/**
 * Consuming less at once is no progress: the heads of messages are consumed as
 * they come, also when the rest is not read, and a reader of a byte now and
 * then must not count as active.
 */
export const PROGRESS_BYTES_MIN = 64;

/** What the budget needs of a stream, or of a conduit that shares one. */
export interface Budgeted {
  /** Received and not consumed; 0 for a stream that was divided. */
  readonly waitingBytes: number;
  /** When it last made progress, by the budget's count; kept for the budget. */
  progressTick: number;
  /** Resets it and gives its handlers the reason. */
  giveUp(reason: string): void;
}

/** A connection, or a divided stream, as a place where such are found. */
export interface BudgetMember {
  budgeted(): Iterable<Budgeted>;
}

/** One per process, handed to every connection. */
export class ReceiveBudget {
  readonly #members: Set<BudgetMember> = new Set();
  #bytes = 0;
  #tick = 0;
  #resets = 0;
  #isClearing = false;

  /** @param limitBytes Bytes received and not consumed, of all streams. */
  constructor(
    private readonly limitBytes: number = RECEIVE_BUDGET_BYTES_DEFAULT,
  ) {
    if (!(limitBytes > 0)) {
      throw new RangeError(`Cannot keep a budget of ${limitBytes} bytes`);
    }
  }

  /** Bytes received and not consumed, now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** How many streams and conduits were reset for it. */
  get resets(): number {
    return this.#resets;
  }

  /** Connections and divided streams that take part. */
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
   * `bytes` more wait at `one`, which counts them already. Over the limit
   * some are reset before this returns, which may be this one.
   */
  received(one: Budgeted, bytes: number): void {
    // With nothing waiting it was not stalled: its wait begins now.
    if (one.waitingBytes === bytes) one.progressTick = ++this.#tick;
    this.#bytes += bytes;
    if (this.#bytes > this.limitBytes) this.#clear();
  }

  /** `one` passed on `bytes`, or dropped them. */
  consumed(one: Budgeted, bytes: number): void {
    if (bytes >= PROGRESS_BYTES_MIN) one.progressTick = ++this.#tick;
    this.#bytes -= bytes;
  }

  /**
   * `one` is over: its remaining bytes are never consumed. Called once for
   * each.
   */
  closed(one: Budgeted): void {
    this.#bytes -= one.waitingBytes;
  }

  #clear(): void {
    if (this.#isClearing) return;
    this.#isClearing = true;
    const reason = `Cannot keep unread data: ${this.#bytes} bytes wait ` +
      `in this process, wanted at most ${this.limitBytes}, and none longer`;
    try {
      for (const one of this.#byStall()) {
        if (this.#bytes <= this.limitBytes * CLEARED_SHARE) break;
        // A handler may have consumed or closed it meanwhile.
        if (one.waitingBytes === 0) continue;
        this.#resets++;
        one.giveUp(reason);
      }
    } finally {
      this.#isClearing = false;
    }
  }

  /** All that hold something, the longest stalled first. */
  #byStall(): Budgeted[] {
    return [...this.#members]
      .flatMap((member) => [...member.budgeted()])
      .filter(({ waitingBytes }) => waitingBytes > 0)
      .sort((one, other) => one.progressTick - other.progressTick);
  }
}
