/**
 * The user's fault, as one line that says what was seen, what was wanted and
 * what to do. Ends the process with `ExitCode.USAGE`.
 *
 * @module
 */

/** See the module description. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
