/**
 * Where guards report slips of our own: errors that nobody foresaw.
 *
 * A handler that throws costs its stream or its conduit, not all that share the
 * connection; what is thrown must be heard of all the same. Who that is, a
 * process says once (`platform/errors/internal_errors.ts`), because nobody could
 * do anything else about such an error. Until then it is thrown on, as if there
 * were no guard.
 *
 * @module
 */

/** What the guard stands in front of. */
export type FaultPlace = "stream" | "conduit" | "link";

/** Hears of each error. */
export type FaultReporter = (where: FaultPlace, error: unknown) => void;

/** What the other end is told, where an end has a reason. */
export const INTERNAL_ERROR = "an internal error";

let reporter: FaultReporter = (_where, error) => {
  throw error;
};

/** Sets who hears of them from now on. */
export function setFaultReporter(next: FaultReporter): void {
  reporter = next;
}

/** To be called by the guard that caught it, once. */
export function reportFault(where: FaultPlace, error: unknown): void {
  reporter(where, error);
}
