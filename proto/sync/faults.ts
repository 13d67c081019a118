/**
 * Where guards report slips of our own: unforeseen errors.
 *
 * A handler that throws costs its stream or its conduit, not all that share the
 * connection; what is thrown must be reported all the same. A process sets one
 * reporter (`platform/errors/internal_errors.ts`), as nothing else can be done
 * about such an error. Until then it is thrown on, as if there were no guard.
 *
 * @module
 */

/** What the guard stands in front of. */
type FaultPlace = "stream" | "conduit" | "link";

/** Is called for each error. */
type FaultReporter = (where: FaultPlace, error: unknown) => void;

/** What the other end is sent, where an end has a reason. */
export const INTERNAL_ERROR = "an internal error";

let reporter: FaultReporter = (_where, error) => {
  throw error;
};

/** Sets the reporter from now on. */
export function setFaultReporter(next: FaultReporter): void {
  reporter = next;
}

/** To be called by the guard that caught it, once. */
export function reportFault(where: FaultPlace, error: unknown): void {
  reporter(where, error);
}
