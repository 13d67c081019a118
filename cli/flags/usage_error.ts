/**
 * A mistake of the user, as one line: what was seen, what was wanted, and what to
 * do. Ends the process with `ExitCode.USAGE`.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";

/** See the module description. */
export class UsageError extends Error {
  override readonly name = "UsageError";

  constructor(message: string, readonly tunnelCode: Code = "TUN101") {
    super(message);
  }
}
