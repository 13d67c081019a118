/**
 * The gRPC status of a call that ended without one: by the stream's reset
 * (PROTOCOL-HTTP2, "Errors"), or by an HTTP status when the answer is not gRPC.
 *
 * @module
 */

import { ErrorCode } from "../frames/wire_error.ts";
import type { StreamReset } from "../streams/stream.ts";
import { type Status, StatusCode } from "./status.ts";

/**
 * What is not here is INTERNAL: a peer that broke HTTP/2, or reports that we
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
