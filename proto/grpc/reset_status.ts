/**
 * How a stream that ended without a status maps to one (PROTOCOL-HTTP2, "Errors").
 *
 * @module
 */

import type { StreamReset } from "../streams/stream.ts";
import { type Status, StatusCode } from "./status.ts";

/** RST_STREAM codes (RFC 9113 §7) that gRPC itself sends. */
export const ResetCode = { NO_ERROR: 0x0, CANCEL: 0x8 } as const;

/** Indexed by RST_STREAM code, 0x0 to 0xd. */
const CODE_OF_RESET: readonly StatusCode[] = [
  StatusCode.INTERNAL, // NO_ERROR: a reset is no way to say OK
  StatusCode.INTERNAL, // PROTOCOL_ERROR
  StatusCode.INTERNAL, // INTERNAL_ERROR
  StatusCode.INTERNAL, // FLOW_CONTROL_ERROR
  StatusCode.INTERNAL, // SETTINGS_TIMEOUT
  StatusCode.INTERNAL, // STREAM_CLOSED: no mapping in the table; a broken peer
  StatusCode.INTERNAL, // FRAME_SIZE_ERROR
  StatusCode.UNAVAILABLE, // REFUSED_STREAM
  StatusCode.CANCELLED, // CANCEL
  StatusCode.INTERNAL, // COMPRESSION_ERROR
  StatusCode.INTERNAL, // CONNECT_ERROR
  StatusCode.RESOURCE_EXHAUSTED, // ENHANCE_YOUR_CALM
  StatusCode.PERMISSION_DENIED, // INADEQUATE_SECURITY
  StatusCode.UNKNOWN, // HTTP_1_1_REQUIRED
];

/** The status that a caller sees for `reset`. */
export function statusOfReset(reset: StreamReset): Status {
  const code = reset.by === "lost" || reset.by === "refused"
    ? StatusCode.UNAVAILABLE
    : CODE_OF_RESET[reset.code] ?? StatusCode.UNKNOWN;
  return { code, message: reset.reason };
}
