/**
 * How a stream that ended without a status maps to one (PROTOCOL-HTTP2, "Errors").
 *
 * @module
 */

import { ErrorCode } from "../frames/wire_error.ts";
import type { StreamReset } from "../streams/stream.ts";
import { type Status, StatusCode } from "./status.ts";

/** What is not here is INTERNAL: a peer that broke HTTP/2, or says we did. */
const TABLE: Readonly<Record<number, StatusCode>> = {
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
  return TABLE[resetCode] ??
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
