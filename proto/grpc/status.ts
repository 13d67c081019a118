/**
 * gRPC status codes and the one error that carries them.
 *
 * @module
 */

import type { Code } from "../codes/codes.ts";

/** The codes of grpc/doc/statuscodes.md, in gRPC's spelling. */
export const StatusCode = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

/** One of {@linkcode StatusCode}. */
export type StatusCode = typeof StatusCode[keyof typeof StatusCode];

/** How a call ended. */
export interface Status {
  readonly code: StatusCode;
  /** For people; may be empty. */
  readonly message: string;
  /**
   * The peer has certainly not processed the call (RFC 9113 §8.7), so it can be
   * made again elsewhere, whatever it contains.
   */
  readonly isUnprocessed?: true;
  /** Between our own ends: what `tunnel explain` knows more of. */
  readonly tunnelCode?: Code | undefined;
}

/** A status other than OK, as something that can be thrown. */
export class GrpcError extends Error {
  override readonly name = "GrpcError";

  constructor(
    readonly code: StatusCode,
    message: string,
    readonly tunnelCode?: Code,
  ) {
    super(message);
  }

  /** As the end of a call. */
  get status(): Status {
    const { code, message, tunnelCode } = this;
    return tunnelCode === undefined
      ? { code, message }
      : { code, message, tunnelCode };
  }
}

/** The name of `code`, such as `"UNAVAILABLE"`, for logs and metrics. */
export function statusName(code: number): string {
  return NAMES.get(code) ?? `CODE_${code}`;
}

/** The same as Go prints it, such as `"Unavailable"`: for labels that Go set. */
export function goStatusName(code: number): string {
  // Go's own spelling, and no word.
  if (code === StatusCode.CANCELLED) return "Canceled";
  if (code === StatusCode.OK) return "OK";
  return statusName(code).toLowerCase()
    .replaceAll(/(?:^|_)([a-z0-9])/g, (_, first) => first.toUpperCase());
}

const NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(StatusCode).map(([name, code]) => [code, name]),
);
