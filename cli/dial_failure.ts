/**
 * A dial that failed, as an exit code and a line.
 *
 * @module
 */

import type { TunnelDialError } from "../client/dial_error.ts";
import { CommandFailure } from "./command_failure.ts";
import { ExitCode } from "./exit_codes.ts";

/** What was said of a dial, and what to look at. */
export function dialFailureText({ message }: TunnelDialError): string {
  return /connect: connection refused\b/.test(message)
    ? `${message}; is something listening there?`
    : message;
}

/** A server that cannot be reached is a failure; all else is a refusal. */
export function asDialFailure(error: TunnelDialError): CommandFailure {
  const code = error.reason === "streamsetup"
    ? ExitCode.FAILURE
    : ExitCode.REFUSED;
  return new CommandFailure(code, dialFailureText(error), error);
}
