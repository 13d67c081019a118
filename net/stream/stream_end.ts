/**
 * How a stream ended, by what reading or writing it threw.
 *
 * @module
 */

import { codeOf, messageOf } from "../../platform/errors/error_code.ts";
import {
  INTERNAL_ERROR,
  isSlip,
  reportInternalError,
} from "../../platform/errors/internal_errors.ts";
import type { ConduitEnd } from "../../proto/transfer/conduit.ts";

/** Codes with which a kernel reports that the peer gave the connection up. */
const RESET_CODES: ReadonlySet<string> = new Set([
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ENOTCONN",
]);

/**
 * Distinguishes a reset (the peer gave up on purpose) from a loss (the
 * connection broke).
 *
 * @param error What a read or write of a socket was rejected with.
 */
export function endOf(error: unknown): ConduitEnd {
  if (isReset(error)) {
    return { kind: "reset", reason: "connection reset by peer" };
  }
  if (codeOf(error) === "ETIMEDOUT") {
    return { kind: "lost", reason: "connection timed out" };
  }
  // Its own words are an address of rustls's manual.
  if (error instanceof Deno.errors.UnexpectedEof) {
    return {
      kind: "lost",
      reason: "TLS connection was cut off without a goodbye",
    };
  }
  if (isSlip(error)) {
    reportInternalError("socket", error);
    return { kind: "lost", reason: INTERNAL_ERROR };
  }
  const reason = messageOf(error);
  return { kind: "lost", reason };
}

function isReset(error: unknown): boolean {
  return error instanceof Deno.errors.ConnectionReset ||
    error instanceof Deno.errors.ConnectionAborted ||
    error instanceof Deno.errors.BrokenPipe ||
    error instanceof Deno.errors.NotConnected ||
    RESET_CODES.has(codeOf(error));
}
