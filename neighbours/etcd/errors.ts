/**
 * What can go wrong with etcd, as one sentence and gRPC's code.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import {
  INTERNAL_ERROR,
  reportInternalError,
} from "../../platform/errors/internal_errors.ts";
import { GrpcError, StatusCode, statusName } from "../../proto/grpc/status.ts";

/** An answer that is a failure, or none. `message` is the whole sentence. */
export class EtcdError extends Error {
  override readonly name = "EtcdError";
  readonly tunnelCode: Code = "TUN802";

  constructor(readonly code: StatusCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
  }
}

/** Any error in a form for retries; an internal error is reported. */
export function etcdTrouble(error: unknown): EtcdError {
  if (error instanceof EtcdError) return error;
  reportInternalError("task", error);
  return new EtcdError(StatusCode.INTERNAL, INTERNAL_ERROR, error);
}

/** @param doing Goes on after "Cannot", such as `read /tunnel/`. */
export function failureOf(doing: string, error: GrpcError): EtcdError {
  // etcd writes "etcdserver: …" or "mvcc: …" before each of its sentences.
  const said = error.message || `it answered ${statusName(error.code)}`;
  const remedy = REMEDIES.find(([words]) => said.includes(words))?.[1];
  const message = `Cannot ${doing} in etcd: ${said}`;
  return new EtcdError(
    error.code,
    remedy === undefined ? message : `${message}; ${remedy}`,
    error,
  );
}

const REMEDIES: readonly (readonly [words: string, remedy: string])[] = [
  ["permission denied", "grant the user a role with rights to that key"],
  ["user name is empty", "it wants a user: give one, and its password"],
  ["authentication failed", "the user or its password is wrong"],
];

/**
 * The token is not valid, or no longer, or none was shown because none was
 * needed before: get a new one.
 */
export function isAboutToken(message: string): boolean {
  return message.includes("invalid auth token") ||
    message.includes("revision of auth store is old") ||
    message.includes("user name is empty");
}

/** Another member, or this one in a moment, may do better. */
export function isAboutMember(code: StatusCode): boolean {
  return code === StatusCode.UNAVAILABLE ||
    code === StatusCode.DEADLINE_EXCEEDED;
}
