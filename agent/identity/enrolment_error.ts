/**
 * What may come of asking for a certificate: refusals that stay refusals, and
 * troubles that pass.
 *
 * @module
 */

import { type Code, tunnelCodeOf } from "../../proto/codes/codes.ts";
import { messageOf } from "../../platform/errors/error_code.ts";
import { NoServerError } from "../../net/dial/server_addresses.ts";
import { LinkRefusedError } from "../../proto/link/hello.ts";
import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";

/** Asking again would be answered in the same way. One sentence. */
export class EnrolmentError extends Error {
  override readonly name = "EnrolmentError";

  /** As the server says it. */
  get tunnelCode(): Code {
    return tunnelCodeOf(this.cause) ?? "TUN320";
  }
}

/** The server at an address is not the one that made the token. */
export class PinError extends Error {
  override readonly name = "PinError";
  readonly tunnelCode: Code = "TUN205";
}

/** Statuses that only a person can change. */
const DEFINITE: ReadonlySet<StatusCode> = new Set([
  StatusCode.INVALID_ARGUMENT,
  StatusCode.NOT_FOUND,
  StatusCode.ALREADY_EXISTS,
  StatusCode.PERMISSION_DENIED,
  StatusCode.FAILED_PRECONDITION,
  StatusCode.OUT_OF_RANGE,
  StatusCode.UNIMPLEMENTED,
  StatusCode.UNAUTHENTICATED,
]);

/** Whether it is of no use to ask again, at any of the addresses. */
export function isDefinite(error: unknown): boolean {
  if (error instanceof NoServerError) return error.errors.every(isDefinite);
  return error instanceof EnrolmentError || error instanceof PinError ||
    error instanceof LinkRefusedError ||
    (error instanceof GrpcError && DEFINITE.has(error.code));
}

/** The sentence of an error, with what to do where the server cannot know. */
export function sentenceOf(error: unknown): string {
  if (error instanceof GrpcError && error.code === StatusCode.UNIMPLEMENTED) {
    return "Cannot ask the server for a certificate: it has no identity of its " +
      "own (is it Konnectivity's, or does it run with --cluster-cert?); " +
      "start `tunnel server` with --state-dir, or give this agent --ca-cert, " +
      "--agent-cert and --agent-key";
  }
  return messageOf(error);
}
