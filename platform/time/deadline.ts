/**
 * Waiting no longer than a deadline, and no longer than the caller wants the
 * result.
 *
 * What can be given up takes a signal ({@linkcode withDeadline}); what cannot
 * is left to itself ({@linkcode orAborted}), and both together are
 * {@linkcode within}. A caller that does not mind a longer task uses
 * {@linkcode atMost}.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";

/** How long work may take, and how to give it up. */
export interface DeadlineOptions {
  readonly timers: Timers;
  readonly timeoutMs: number;
  /** What the work is aborted with when time is up. */
  readonly late: () => unknown;
  /** Gives the work up. */
  readonly signal?: AbortSignal | undefined;
  /** What the work is aborted with then; absent: the signal's reason. */
  readonly givenUp?: () => unknown;
  /**
   * Aborted instead of one made for this work, for callers that have one for
   * each piece of work already.
   */
  readonly controller?: AbortController | undefined;
}

/**
 * Runs `work` until it ends, time is up, or its caller gives up.
 *
 * @param work Ends soon after its signal is aborted, with the signal's reason.
 */
export async function withDeadline<Result>(
  options: DeadlineOptions,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const { timers, timeoutMs, late, signal, givenUp } = options;
  const controller = options.controller ?? new AbortController();
  const giveUp = () =>
    controller.abort(givenUp === undefined ? signal?.reason : givenUp());
  if (signal?.aborted) giveUp();
  signal?.addEventListener("abort", giveUp);
  const timer = timers.after(timeoutMs, () => controller.abort(late()));
  try {
    return await work(controller.signal);
  } finally {
    timer.cancel();
    signal?.removeEventListener("abort", giveUp);
  }
}

/**
 * Waits for what cannot be given up, such as the resolver, no longer than the
 * caller wants it.
 *
 * @param discard Gets a late result, to free it.
 * @throws What `promise` rejects with, or the signal's reason.
 */
export function orAborted<Value>(
  promise: Promise<Value>,
  signal: AbortSignal,
  discard?: (late: Value) => void,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    let isOver = false;
    const onAbort = () => {
      isOver = true;
      reject(signal.reason);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort);
    promise.then((value) => {
      signal.removeEventListener("abort", onAbort);
      if (isOver) discard?.(value);
      else resolve(value);
    }, (error) => {
      signal.removeEventListener("abort", onAbort);
      reject(error);
    });
  });
}

/** {@linkcode withDeadline} for what cannot be given up, and goes on alone. */
export function within<Value>(
  options: DeadlineOptions,
  promise: Promise<Value>,
): Promise<Value> {
  return withDeadline(options, (signal) => orAborted(promise, signal));
}

/**
 * Waits until `promise` settles, and no longer than `timeoutMs`: a late promise
 * is left alone, and its rejection is ignored.
 *
 * @throws The reason of a rejection in time.
 */
export async function atMost(
  timers: Timers,
  timeoutMs: number,
  promise: Promise<unknown>,
): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = timers.after(timeoutMs, late.resolve);
  try {
    await Promise.race([promise, late.promise]);
  } finally {
    timer.cancel();
  }
}
