/**
 * The phases of a program's end: after the request to end it still serves, and
 * closes when nothing runs, or when its time is over. It also waits a moment
 * for a process that is started beside it (`kill OLD; NEW &`): if an idle
 * program ended at once, callers would be refused until the new one listens.
 *
 * The program defines when it is idle, and what happens before the close.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";

/**
 * How long at least a successor is waited for: a start takes 0.3 to 1.2 s until it
 * asks for the sockets, and an operator who stops a service for good does not want
 * to wait.
 */
export const SUCCESSOR_MS = 1_500;

/** And at most. */
const SUCCESSOR_MS_MAX = 10_000;

/**
 * On a slow machine, or a busy one, a start takes longer: the next process gets
 * twice the time that this one needed.
 *
 * @param startMs The time until it asked for its predecessor's sockets.
 */
export function successorWaitMs(startMs: number): number {
  return Math.min(Math.max(SUCCESSOR_MS, 2 * startMs), SUCCESSOR_MS_MAX);
}

/** Takes a program from running to closed, once. Idempotent. */
export abstract class Drain<Phase extends string> {
  readonly #finished = Promise.withResolvers<void>();
  #deadline: Timer | undefined;
  #step: Timer | undefined;
  #successor: Timer | undefined;
  protected phase: "running" | Phase | "closed" = "running";

  constructor(protected readonly timers: Timers) {}

  /** Called whenever the load has changed. */
  abstract loadChanged(): void;

  /** Closes everything that is left; settles when it is gone. */
  protected abstract close(reason: string): Promise<void>;

  /** Settles when everything is closed. */
  get finished(): Promise<void> {
    return this.#finished.promise;
  }

  /** Nothing has asked it to end, and no other process has its place. */
  get isRunning(): boolean {
    return this.phase === "running";
  }

  /**
   * It does not count as idle before that, unless its time is over.
   *
   * @param ms From now on, in place of an earlier value; 0: no longer.
   */
  awaitSuccessor(ms: number): void {
    this.forgetSuccessor();
    if (ms > 0) {
      this.#successor = this.timers.after(ms, () => {
        this.#successor = undefined;
        this.loadChanged();
      });
    }
    this.loadChanged();
  }

  /** Ends without waiting any longer. */
  now(reason: string): void {
    if (this.phase === "closed") return;
    this.phase = "closed";
    this.#deadline?.cancel();
    this.stepAfter();
    this.forgetSuccessor();
    this.close(reason).then(this.#finished.resolve, this.#finished.reject);
  }

  protected get awaitsSuccessor(): boolean {
    return this.#successor !== undefined;
  }

  protected forgetSuccessor(): void {
    this.#successor?.cancel();
    this.#successor = undefined;
  }

  /** Something waits for the next step. */
  protected get isStepping(): boolean {
    return this.#step !== undefined;
  }

  /** The next step, instead of one that is waited for; absent: none. */
  protected stepAfter(ms = 0, step?: () => void): void {
    this.#step?.cancel();
    this.#step = step && this.timers.after(ms, () => {
      this.#step = undefined;
      step();
    });
  }

  /** When its time is over, which counts from the first call on. */
  protected limit(timeoutMs: number, late: () => void): void {
    this.#deadline ??= this.timers.after(timeoutMs, late);
  }
}
