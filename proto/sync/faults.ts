/**
 * Where guards report internal errors.
 *
 * A handler that throws costs its own stream or conduit, and no other of the
 * connection; the error must be reported all the same. A process sets one
 * reporter (`platform/errors/internal_errors.ts`), since such an error cannot
 * be handled in any other way. Without a reporter the error is thrown on.
 *
 * @module
 */

/** The guarded activity. */
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

/** Called once by the guard that caught the error. */
export function reportFault(where: FaultPlace, error: unknown): void {
  reporter(where, error);
}
