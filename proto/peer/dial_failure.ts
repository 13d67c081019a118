/**
 * Why a dial failed, for peers that read more than DIAL_RSP's text.
 *
 * Konnectivity's DIAL_RSP carries words only. Between our own ends the reason
 * travels in the response head, so that a client need not search a text.
 *
 * @module
 */

import type { Metadata } from "../grpc/metadata.ts";
import type { DialFailureReason } from "./dial_error.ts";

/** The metadata field; its value is one of `DialFailureReason`. */
export const DIAL_FAILURE_FIELD = "tunnel-dial-failure";

const REASONS: ReadonlySet<string> = new Set<DialFailureReason>([
  "endpoint",
  "timeout",
  "cancelled",
  "link-lost",
  "dial-closed",
  "no-agent",
  "refused",
]);

/** The reason in `metadata`; `endpoint`, Konnectivity's only one, without. */
export function dialFailureOf(
  metadata: Metadata | undefined,
): DialFailureReason {
  const reason = metadata?.text(DIAL_FAILURE_FIELD) ?? "";
  return REASONS.has(reason) ? reason as DialFailureReason : "endpoint";
}
