/**
 * How a connection through the tunnel ended, as errors for who reads and writes.
 *
 * @module
 */

import type { ConduitEnd } from "../proto/transfer/conduit.ts";

/** One end gave the connection up (TCP RST and its like). */
export class TunnelResetError extends Error {
  /** Tells it from other errors, also by its text. */
  override readonly name = "TunnelResetError";
  /** See `tunnel explain`. */
  readonly tunnelCode: string = "TUN515";
}

/** The connection broke; what the other end saw is unknown. */
export class TunnelLostError extends Error {
  /** Tells it from other errors, also by its text. */
  override readonly name = "TunnelLostError";
  /** See `tunnel explain`. */
  readonly tunnelCode: string = "TUN403";
}

/** `clean` comes here too: what is written after it reaches nobody. */
export function errorOf(end: ConduitEnd): Error {
  if (end.kind === "lost") return new TunnelLostError(end.reason);
  return new TunnelResetError(
    end.kind === "reset" ? end.reason : "the connection is over",
  );
}
