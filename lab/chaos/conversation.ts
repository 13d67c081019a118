/**
 * One connection whose every byte is known: pieces of a pattern go, the target
 * echoes them, and what comes back is compared. Says when nothing moved.
 *
 * @module
 */

import { Pattern } from "../simulation/pattern.ts";
import { writeAll } from "../../tests/support/peers/sockets.ts";
import { sleep } from "../../tests/support/watch/event_loop.ts";
import type { Wire } from "./entrance.ts";
import type { Ledger, Path } from "./ledger.ts";

/** How a conversation goes. */
export interface Manner {
  readonly pieceBytes: number;
  readonly pauseMs: number;
  /** Sent and not yet echoed; at this much it waits. */
  readonly windowBytes: number;
}

/** Shorter standstills are those of a busy machine. */
const STALL_MIN_MS = 300;
const TICK_MS = 50;
const READ_BYTES = 64 * 1024;

/** See the module description. */
export class Conversation {
  readonly #pattern: Pattern;
  #sent = 0;
  #seen = 0;
  /** When something last moved, or began to be awaited. */
  #movedMs = Date.now();
  /** The standstill that goes on now, as the ledger has it. */
  #stall: { atMs: number; tookMs: number; path: Path } | undefined;
  #isOver = false;
  #isWrong = false;
  #isGivenUp = false;
  /** We have said that nothing more comes; the target ends only after that. */
  #hasEnded = false;

  constructor(
    readonly path: Path,
    private readonly wire: Wire,
    private readonly manner: Manner,
    key: number,
    private readonly ledger: Ledger,
  ) {
    this.#pattern = new Pattern(key);
  }

  /** Since when an echo is awaited in vain; 0 when none is. */
  get waitingMs(): number {
    return this.#sent === this.#seen ? 0 : Date.now() - this.#movedMs;
  }

  /**
   * Talks until `isEnough`, or until it breaks, which the ledger then knows.
   *
   * @returns Whether it ended in order.
   */
  async talk(isEnough: () => boolean): Promise<boolean> {
    const ticker = setInterval(() => this.#tick(), TICK_MS);
    try {
      await Promise.all([this.#read(), this.#write(isEnough)]);
      return !this.#isWrong;
    } catch (error) {
      if (!this.#isGivenUp) this.#broke(error);
      return false;
    } finally {
      this.#tick();
      this.#isOver = true;
      clearInterval(ticker);
      this.wire.close();
    }
  }

  /** Ends it at once; no break that anybody counts. */
  giveUp(): void {
    this.#isGivenUp = true;
    this.wire.close();
  }

  async #write(isEnough: () => boolean): Promise<void> {
    const { pieceBytes, pauseMs, windowBytes } = this.manner;
    while (!isEnough() && !this.#isOver) {
      if (this.#sent - this.#seen + pieceBytes <= windowBytes) {
        if (this.#sent === this.#seen) this.#movedMs = Date.now();
        const piece = this.#pattern.piece(this.#sent, pieceBytes);
        this.#sent += pieceBytes;
        await writeAll(this.wire, piece);
      }
      await sleep(pauseMs);
    }
    if (this.#isOver) return;
    this.#hasEnded = true;
    await this.wire.closeWrite();
  }

  /** Until the target's end, which must not come before all is echoed. */
  async #read(): Promise<void> {
    const buffer = new Uint8Array(READ_BYTES);
    try {
      for (;;) {
        const count = await this.wire.read(buffer);
        if (count === null) break;
        this.#compare(buffer.subarray(0, count));
      }
    } finally {
      this.#isOver = true;
      this.wire.close();
    }
    if (!this.#hasEnded || this.#seen < this.#sent) throw new EarlyEndError();
  }

  #compare(chunk: Uint8Array): void {
    const offset = this.#pattern.differenceAt(this.#seen, chunk);
    if (offset >= 0 && !this.#isWrong) {
      this.#isWrong = true;
      this.ledger.wrong.push({ atMs: Date.now(), path: this.path, offset });
    }
    this.#tick();
    this.#seen += chunk.length;
    this.ledger.bytes += chunk.length;
    this.#movedMs = Date.now();
    this.#stall = undefined;
  }

  /** Standstills count while they last, too: one may never end. */
  #tick(): void {
    const tookMs = this.waitingMs;
    if (tookMs < STALL_MIN_MS) return;
    if (this.#stall === undefined) {
      this.#stall = { atMs: this.#movedMs, tookMs, path: this.path };
      this.ledger.stalls.push(this.#stall);
    }
    this.#stall.tookMs = tookMs;
  }

  #broke(error: unknown): void {
    this.ledger.breaks.push({
      atMs: Date.now(),
      path: this.path,
      cause: error instanceof Error ? error.message : String(error),
      lostBytes: this.#sent - this.#seen,
      isEof: error instanceof EarlyEndError,
    });
  }
}

/** An end in order that nobody asked for: a loss that looks like none. */
class EarlyEndError extends Error {
  override name = "EarlyEndError";
  override message = "ended, though the target has not";
}
