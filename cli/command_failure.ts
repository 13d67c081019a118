/**
 * A failure with an exit code of its own.
 *
 * @module
 */

import type { ExitCode } from "./exit_codes.ts";

/** One line for the user; `code` for their script. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";

  constructor(readonly code: ExitCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
  }
}
