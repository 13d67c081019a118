/**
 * gRPC status codes and the one error that carries them.
 *
 * @module
 */

import type { Code } from "../codes/codes.ts";
import { ErrorCode } from "../frames/wire_error.ts";
import type { StreamReset } from "../streams/stream.ts";

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
   * The peer has certainly not processed the call (RFC 9113 §8.7), so any call
   * can be repeated elsewhere.
   */
  readonly isUnprocessed?: true;
  /** Between our own ends: the code for `tunnel explain`. */
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

// The gRPC status of a call that ended without one: by the stream's reset
// (PROTOCOL-HTTP2, "Errors"), or by an HTTP status when the answer is not gRPC.

/**
 * Every other code is INTERNAL: a peer that broke HTTP/2, or reports that we
 * did.
 */
const RESET_CODES: Readonly<Record<number, StatusCode>> = {
  [ErrorCode.REFUSED_STREAM]: StatusCode.UNAVAILABLE,
  [ErrorCode.CANCEL]: StatusCode.CANCELLED,
  [ErrorCode.ENHANCE_YOUR_CALM]: StatusCode.RESOURCE_EXHAUSTED,
  [ErrorCode.INADEQUATE_SECURITY]: StatusCode.PERMISSION_DENIED,
  [ErrorCode.HTTP_1_1_REQUIRED]: StatusCode.UNKNOWN,
};

/** The highest code that RFC 9113 §7 defines. */
const KNOWN_CODE_MAX = ErrorCode.HTTP_1_1_REQUIRED;

/** The gRPC code for a peer's RST_STREAM with `resetCode`. */
export function codeOfReset(resetCode: number): StatusCode {
  return RESET_CODES[resetCode] ??
    (resetCode <= KNOWN_CODE_MAX ? StatusCode.INTERNAL : StatusCode.UNKNOWN);
}

/** The status that a caller sees for `reset`. */
export function statusOfReset(reset: StreamReset): Status {
  const code = reset.by === "lost" || reset.by === "refused"
    ? StatusCode.UNAVAILABLE
    : codeOfReset(reset.code);
  const message = reset.reason;
  const isUnprocessed = reset.by === "refused" ||
    (reset.by === "peer" && reset.code === ErrorCode.REFUSED_STREAM);
  return isUnprocessed ? { code, message, isUnprocessed } : { code, message };
}

/**
 * An answer that is not gRPC is such as an error page of a load balancer
 * (grpc/doc/http-grpc-status-mapping.md).
 */
const HTTP_CODES: Readonly<Record<number, StatusCode>> = {
  400: StatusCode.INTERNAL,
  401: StatusCode.UNAUTHENTICATED,
  403: StatusCode.PERMISSION_DENIED,
  404: StatusCode.UNIMPLEMENTED,
  429: StatusCode.UNAVAILABLE,
  502: StatusCode.UNAVAILABLE,
  503: StatusCode.UNAVAILABLE,
  504: StatusCode.UNAVAILABLE,
};

/** The gRPC code for `httpStatus`; everything not in the table is UNKNOWN. */
export function codeOfHttpStatus(httpStatus: number): StatusCode {
  return HTTP_CODES[httpStatus] ?? StatusCode.UNKNOWN;
}
