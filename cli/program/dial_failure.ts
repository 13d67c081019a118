/**
 * What commands that dial tell a person: a dial that failed, as an exit code and
 * a line, and warnings on standard error, as their output is not a log.
 *
 * @module
 */

import type { TunnelDialError } from "../../client/dial_error.ts";
import { printable } from "../../platform/text/printable.ts";
import { CommandFailure, ExitCode } from "./exit_codes.ts";
import { type Log, openLog } from "../../platform/log/log.ts";

/** Limit on text of an agent that is repeated. */
const MESSAGE_LENGTH_MAX = 2_000;

/** The reason of a failed dial, and a hint. */
export function dialFailureText(error: TunnelDialError): string {
  const message = printable(error.message, MESSAGE_LENGTH_MAX);
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

/** @param command Such as `dial`. */
export function dialWarnings(command: string): Log {
  return openLog(command, { format: "text", level: 0 });
}
