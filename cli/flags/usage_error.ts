/**
 * A mistake of the user, as one line: what was seen, what was wanted, and what to
 * do. Ends the process with `ExitCode.USAGE`.
 *
 * @module
 */

/** See the module description. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
