/**
 * Internal errors ("slips"): errors in our own code that no one expected.
 *
 * Each entry of the event loop (readable, accept, timer, handler) has a guard
 * that ends the object of the call and reports the error here. So an error that
 * a peer can provoke ends only that peer's connection.
 *
 * Expected errors never come here; they are caught by type. The listener
 * handles the report (`internal_error_log.ts`). Without a listener it is an
 * uncaught error: a short command ends, a test fails.
 *
 * @module
 */

import { INTERNAL_ERROR, setFaultReporter } from "../../proto/sync/faults.ts";

export { INTERNAL_ERROR };

/** The activity: which guard caught it. There are only a few. */
export type Where =
  | "accept"
  | "callback"
  | "catalog"
  | "conduit"
  | "datagram"
  | "dial"
  | "file"
  | "handshake"
  | "http"
  | "http2"
  | "identity"
  | "link"
  | "proxy"
  | "socket"
  | "stream"
  | "task"
  | "timer"
  /** No guard caught it, but the net below all of them. */
  | "unguarded";

/** Receives each error. */
export type InternalErrorListener = (where: Where, error: unknown) => void;

const counts = new Map<Where, number>();
const listeners = new Set<InternalErrorListener>();

/** Called where it was caught, once. Does not throw. */
export function reportInternalError(where: Where, error: unknown): void {
  counts.set(where, (counts.get(where) ?? 0) + 1);
  if (listeners.size === 0) return reportError(error);
  for (const listener of listeners) {
    try {
      listener(where, error);
    } catch {
      // There is nowhere left to report, as when the log cannot be written.
    }
  }
}

setFaultReporter(reportInternalError);

/**
 * Whether it can only be ours: the platform's own errors, and the system's, are
 * of other classes or have a code.
 */
export function isSlip(error: unknown): boolean {
  if (!(error instanceof Error)) return true;
  const isOfLanguage = error instanceof TypeError ||
    error instanceof RangeError || error instanceof ReferenceError;
  return isOfLanguage && !("code" in error);
}

/** @returns How to stop listening. */
export function onInternalErrors(listener: InternalErrorListener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Whether there is a receiver of them, which means to go on. */
export function hasInternalErrorListener(): boolean {
  return listeners.size > 0;
}

/** How many there were since the process began, by where. */
export function internalErrorCounts(): Iterable<
  readonly [labels: readonly string[], count: number]
> {
  return [...counts].map(([where, count]) => [[where], count]);
}

/**
 * Runs a task whose errors the caller must not receive.
 *
 * @param failed Ends the object of the task.
 */
export function guarded(
  where: Where,
  run: () => void,
  failed: () => void = () => {},
): void {
  try {
    run();
  } catch (error) {
    reportInternalError(where, error);
    // Half-made things may well refuse to be ended, too.
    if (failed !== NOTHING) guarded(where, failed, NOTHING);
  }
}

const NOTHING = () => {};

/**
 * For code that must continue, such as a loop that follows something: an
 * internal error is reported, and then counts as a failure like others.
 * Otherwise it would end the loop unnoticed.
 */
export function worldly<World extends Error>(
  where: Where,
  error: unknown,
  isOfTheWorld: (error: unknown) => error is World,
): World | Error {
  if (isOfTheWorld(error)) return error;
  reportInternalError(where, error);
  return new Error(INTERNAL_ERROR, { cause: error });
}

/**
 * For a promise that is not awaited, instead of `void`.
 *
 * @param failed Ends the object of the promise.
 */
export function unawaited(
  where: Where,
  promise: Promise<unknown>,
  failed?: () => void,
): void {
  promise.then(undefined, (error) => {
    reportInternalError(where, error);
    if (failed !== undefined) guarded(where, failed);
  });
}
