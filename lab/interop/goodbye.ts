/**
 * The one bad end that is the peer's: Konnectivity's server that hangs up
 * without TLS's goodbye.
 *
 * With CONNECT over TLS one goroutine of it writes the agent's bytes to the
 * caller, and another closes the connection when the caller's end has come.
 * Go's `tls.Conn.Close` sends no close_notify while a `Write` has not returned.
 * The kernel may well stop the writer behind its system call; a caller that ends
 * as soon as it has all of its answer then gets a bare FIN. Under load that were
 * 7 to 10 of 1,000 connections, also with Konnectivity's own agent and with
 * another TLS client; a server that was built to count such closes counted the
 * same number. All bytes are there, so what is asked of both of our ends is
 * unchanged: every byte, and to call this end a loss (RFC 8446 §6.1).
 *
 * @module
 */

import { ExitCode } from "../../cli/program/exit_codes.ts";
import type {
  Frontend,
  Maker,
  Protocol,
} from "../../tests/support/program/tunnel.ts";
import { ProgramError } from "./run_program.ts";

/** More than these of a hundred would be no race. */
export const MISSING_GOODBYES_MAX = 10;

const LOSS =
  "The connection was lost: TLS connection was cut off without a goodbye";

/** Between whom and how. */
export interface Meeting {
  readonly server: Maker;
  readonly protocol: Protocol;
  readonly frontend: { readonly transport: Frontend["transport"] };
}

/**
 * Whether this is how `tunnel dial` reports that end, where it can happen. The
 * bytes are still to be checked.
 */
export function isMissingGoodbye(error: unknown, meeting: Meeting): boolean {
  return meeting.server === "konnectivity" &&
    meeting.protocol === "http-connect" &&
    meeting.frontend.transport === "tcp" &&
    error instanceof ProgramError &&
    error.code === ExitCode.LOST &&
    error.said.includes(LOSS);
}
