/**
 * The exit codes of commands, and a failure with one. They are part of the
 * interface: scripts test them.
 *
 * @module
 */

import { type Code, tunnelCodeOf } from "../../proto/codes/codes.ts";
import type { TunnelDialError } from "../../client/dial_error.ts";
import { printable } from "../../platform/text/printable.ts";
import { type Log, openLog } from "../../platform/log/log.ts";

/** Each code, and its meaning for `tunnel help` and the documentation. */
export const EXIT_CODES = [
  [0, "OK", "The command succeeded."],
  [
    1,
    "FAILURE",
    "It could not: a file, a port, a peer. The last line says why.",
  ],
  [2, "USAGE", "The command line, environment or config file is wrong."],
  [
    3,
    "REFUSED",
    "dial, bench, adsc: the target, the tunnel or the server refused.",
  ],
  [4, "RESET", "dial: the other end reset the connection."],
  [5, "LOST", "dial: the connection broke; data may be missing."],
  [6, "ATTENTION", "status --exit-code: an error is among the warnings."],
] as const;

type ExitRow = typeof EXIT_CODES[number];

/** The codes by name. */
export const ExitCode = Object.fromEntries(
  EXIT_CODES.map(([code, name]) => [name, code]),
) as { readonly [R in ExitRow as R[1]]: R[0] };

/** One of {@linkcode EXIT_CODES}. */
export type ExitCode = ExitRow[0];

/** A failure: one line for the user, `code` for their script. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";

  constructor(
    readonly code: ExitCode,
    message: string,
    cause?: unknown,
    readonly tunnelCode: Code = tunnelCodeOf(cause) ?? "TUN119",
  ) {
    super(message, cause === undefined ? {} : { cause });
  }
}

/** What could not be done, with the code of its reason. */
export function failure(message: string, tunnelCode?: Code): CommandFailure {
  return new CommandFailure(ExitCode.FAILURE, message, undefined, tunnelCode);
}

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
