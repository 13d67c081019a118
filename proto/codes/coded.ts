/**
 * How a code travels: on the error itself.
 *
 * An error that users may see has a `tunnelCode`. `code` was taken: it is the
 * system's `E…`, gRPC's status and a command's exit code already.
 *
 * @module
 */

import { type Code, knownCode } from "./codes.ts";

/** What an error has whose problem is in the table. */
interface Coded {
  readonly tunnelCode?: Code | undefined;
}

/** Nobody wraps an error this often. */
const CAUSES_MAX = 8;

/** The code of an error, or of what caused it; undefined if none has one. */
export function tunnelCodeOf(error: unknown): Code | undefined {
  let at: unknown = error;
  for (let depth = 0; depth < CAUSES_MAX; depth++) {
    if (!(at instanceof Error)) return undefined;
    const { tunnelCode } = at as Coded;
    const known = typeof tunnelCode === "string"
      ? knownCode(tunnelCode)
      : undefined;
    if (known !== undefined) return known;
    at = at.cause;
  }
  return undefined;
}

/** A sentence with its code behind it, as commands end: `… [TUN503]`. */
export function withCode(message: string, code: Code | undefined): string {
  return code === undefined ? message : `${message} [${code}]`;
}
