/**
 * What an HTTP status means when the answer is not gRPC, such as an error page
 * of a load balancer (grpc/doc/http-grpc-status-mapping.md).
 *
 * @module
 */

import { StatusCode } from "./status.ts";

const TABLE: Readonly<Record<number, StatusCode>> = {
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
  return TABLE[httpStatus] ?? StatusCode.UNKNOWN;
}
