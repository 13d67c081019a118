/**
 * The reset reason of a UDP target that refuses datagrams, the same on every
 * hop.
 *
 * ICMP reaches the machine that sent the datagram, which may be an agent's. The
 * client that chose the target may be at the other end of a tunnel, and can
 * choose another: so the flow is reset with this reason, and no hop changes it
 * (SPEC.md).
 *
 * @module
 */

import type { ConduitEnd } from "./conduit.ts";

/** The reason of the reset; also what ECONNREFUSED is called. */
export const REFUSED_REASON = "connection refused";

/** How the flow to a target that refuses ends. */
export const REFUSAL: ConduitEnd = { kind: "reset", reason: REFUSED_REASON };

/** Whether a flow ended so, here or behind a tunnel. */
export function isRefusal(
  end: ConduitEnd,
): end is Extract<ConduitEnd, { kind: "reset" }> {
  return end.kind === "reset" && end.reason === REFUSED_REASON;
}
