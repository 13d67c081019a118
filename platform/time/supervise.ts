/**
 * The loop of tasks that must never end: they follow something, maintain
 * something, or retry until there is an answer.
 *
 * A failed run is followed by another one after a wait. Waits grow from run to
 * run ({@linkcode Backoff}), and are short again after a successful run, or
 * after one that lived long enough to count as such.
 *
 * The owner defines a run, and which errors are problems.
 *
 * @module
 */

import { Backoff, type BackoffOptions } from "../../proto/sync/backoff.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import { pause } from "./pause.ts";

/** A run that ends sooner after it was open was no success. */
export const YOUNG_MS = 1_000;

/** What follows a run that did not fail. */
export type Next =
  /** The next one, at once. */
  | "again"
  /** The next one, after a wait as after a failure, which is not reported. */
  | "backoff"
  /** The next one, after that time. */
  | { readonly afterMs: number }
  /** Nothing: it is over. */
  | "done";

/** One run, as far as it decides about the wait for the next one. */
export interface Run {
  /** The run works from now on: its duration counts when it ends. */
  opened(): void;
  /** It was not opened, or less than {@linkcode YOUNG_MS} ago. */
  readonly isYoung: boolean;
  /** The run counts as a success, however it ends. */
  succeeded(): void;
}

/** The task, and its longest wait: see {@linkcode Backoff}. */
export interface SuperviseOptions<Problem> extends BackoffOptions {
  readonly timers: Timers;
  /** Ends it. A wait ends at once, a run when it has noticed. */
  readonly signal: AbortSignal;
  run(run: Run): Promise<Next>;
  /**
   * The problem in an error that a run threw.
   *
   * @throws An error that must end all runs.
   */
  problemOf(error: unknown): Problem;
  /** Reported and remembered; the next run comes in `retryMs`. */
  onProblem(problem: Problem, retryMs: number): void;
  /** The least wait after this problem, such as a server's Retry-After. */
  leastMs?(problem: Problem): number;
}

/**
 * Runs again and again until it is stopped, or a run reports that it is done.
 *
 * @throws The errors of `problemOf`.
 */
export async function supervise<Problem>(
  options: SuperviseOptions<Problem>,
): Promise<void> {
  const { timers, signal, problemOf, onProblem, leastMs } = options;
  const backoff = new Backoff(options);
  while (!signal.aborted) {
    const run = new TimedRun(timers, backoff);
    let waitMs = 0;
    try {
      const next = await options.run(run);
      run.end();
      if (next === "done") return;
      if (next === "backoff") waitMs = backoff.nextMs();
      else if (next !== "again") waitMs = next.afterMs;
    } catch (error) {
      run.end();
      if (signal.aborted) return;
      const problem = problemOf(error);
      waitMs = Math.max(backoff.nextMs(), leastMs?.(problem) ?? 0);
      onProblem(problem, waitMs);
    }
    if (waitMs > 0) await pause(timers, waitMs, signal);
  }
}

class TimedRun implements Run {
  #openedMs = Infinity;

  constructor(
    private readonly timers: Timers,
    private readonly backoff: Backoff,
  ) {}

  opened(): void {
    this.#openedMs = this.timers.now();
  }

  get isYoung(): boolean {
    return !(this.timers.now() - this.#openedMs >= YOUNG_MS);
  }

  succeeded(): void {
    this.backoff.reset();
  }

  end(): void {
    if (!this.isYoung) this.backoff.reset();
  }
}
