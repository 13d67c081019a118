/**
 * A dial that failed, as an exit code and a line.
 *
 * @module
 */

import type { TunnelDialError } from "../client/dial_error.ts";
import { CommandFailure } from "./command_failure.ts";
import { ExitCode } from "./exit_codes.ts";

/** A server that cannot be reached is a failure; all else is a refusal. */
export function asDialFailure(error: TunnelDialError): CommandFailure {
  const code = error.reason === "streamsetup"
    ? ExitCode.FAILURE
    : ExitCode.REFUSED;
  return new CommandFailure(code, error.message, error);
}
