/**
 * Lines on their way to whoever reads the log. A pipe whose reader stands still
 * takes no more, and a write would wait for as long as that lasts, with all that
 * the process serves: such lines are kept for a while, and counted when there
 * are too many. Refuses to know what stands in a line, and what it is written
 * to.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";

/** Kept for a reader that stands still; further lines are counted. */
export const KEPT_BYTES_MAX: number = 256 * 1024;

/** What a pipe that says it is ready takes without waiting (`PIPE_BUF`). */
const PIECE_BYTES = 4_096;

/** Between two looks whether the reader goes on. */
const LOOK_AGAIN_MS = 100;

/** What a process waits for its reader when it ends: why may stand there. */
const LAST_WORDS_MS = 1_000;

/** What lines are written to. */
export interface LineDevice {
  /**
   * Whether a piece can be written without waiting, looked at for up to so
   * many milliseconds, in which nothing else happens.
   */
  isReady(timeoutMs: number): boolean;
  /** @returns How many bytes were taken. */
  write(bytes: Uint8Array): number;
}

/** See the module description. */
export class LineOutput {
  #kept: Uint8Array[] = [];
  #keptBytes = 0;
  #missing = 0;
  #timer: Timer | undefined;

  /** @param sayMissing Writes a line about those that are not there. */
  constructor(
    private readonly device: LineDevice,
    private readonly timers: Timers,
    private readonly sayMissing: (lines: number) => void,
  ) {}

  write(line: Uint8Array): void {
    if (this.#keptBytes + line.length > KEPT_BYTES_MAX) {
      this.#missing++;
      return;
    }
    this.#kept.push(line);
    this.#keptBytes += line.length;
    // While a timer looks, nobody else need: it was not ready just now.
    if (this.#timer === undefined) this.#flush(0);
  }

  /** Before the process ends: waits a little for the reader. */
  end(): void {
    this.#flush(LAST_WORDS_MS);
    this.#timer?.cancel();
  }

  #flush(timeoutMs: number): void {
    while (this.#kept.length > 0) {
      if (!this.device.isReady(timeoutMs)) return this.#lookAgain();
      this.#writePiece(this.#kept[0]!);
    }
    const missing = this.#missing;
    if (missing === 0) return;
    this.#missing = 0;
    this.sayMissing(missing);
  }

  #writePiece(line: Uint8Array): void {
    const taken = this.device.write(line.subarray(0, PIECE_BYTES));
    this.#keptBytes -= taken;
    if (taken === line.length) this.#kept.shift();
    else this.#kept[0] = line.subarray(taken);
  }

  #lookAgain(): void {
    this.#timer = this.timers.after(LOOK_AGAIN_MS, () => {
      this.#timer = undefined;
      this.#flush(0);
    });
  }
}
