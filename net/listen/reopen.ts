/**
 * Opens a listener again, however often it takes.
 *
 * What stopped it (no descriptors left) is often still so when it is opened
 * again, and a port that is given up stays closed until somebody notices.
 *
 * @module
 */

import { Backoff } from "../../proto/sync/backoff.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";

/** Longest wait between two tries: what a restart would cost anyway. */
export const REOPEN_CAP_MS = 2_000;

/** What `Reopener` needs from outside. */
export interface ReopenerOptions {
  readonly timers: Timers;
  readonly random: () => number;
  /** One try. */
  open(): Promise<void>;
  /** Undoes an `open` that nobody wants any more. */
  close(): void;
  /** Once for each row of failures. */
  onFailure(error: Error): void;
  /** Open again, after failures or without any. */
  onOpen(): void;
}

/** See the module description. */
export class Reopener {
  readonly #options: ReopenerOptions;
  readonly #backoff: Backoff;
  #timer: Timer | undefined;
  #state: "idle" | "opening" | "stopped" = "idle";

  constructor(options: ReopenerOptions) {
    this.#options = options;
    const { random } = options;
    this.#backoff = new Backoff({ capMs: REOPEN_CAP_MS, random });
  }

  /** Whether it is at it; failures are then told to `onFailure` only. */
  get isOpening(): boolean {
    return this.#state === "opening";
  }

  /** Tries until it is open. Nothing, when that is under way. */
  start(): void {
    if (this.#state !== "idle") return;
    this.#state = "opening";
    this.#try(true);
  }

  /** Gives up for good. */
  stop(): void {
    this.#state = "stopped";
    this.#timer?.cancel();
  }

  #try(isFirst: boolean): void {
    this.#options.open().then(
      () => this.#opened(),
      (error) => this.#failed(error, isFirst),
    );
  }

  #opened(): void {
    if (this.#state === "stopped") return this.#options.close();
    this.#state = "idle";
    this.#backoff.reset();
    this.#options.onOpen();
  }

  #failed(error: Error, isFirst: boolean): void {
    if (this.#state === "stopped") return;
    if (isFirst) this.#options.onFailure(error);
    const waitMs = this.#backoff.nextMs();
    this.#timer = this.#options.timers.after(waitMs, () => this.#try(false));
  }
}
