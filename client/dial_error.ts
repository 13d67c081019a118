/**
 * Why a dial failed, in the words of Konnectivity's client.
 *
 * @module
 */

import type { ConnectionId } from "../proto/peer/connection_id.ts";
import { type Code, tunnelCodeOf } from "../proto/codes/codes.ts";
import { DialError } from "../proto/peer/dial_error.ts";
import type { ConduitEnd } from "../proto/transfer/conduit.ts";

/**
 * Reasons as `GetDialFailureReason` gives them upstream.
 *
 * - `endpoint`: the agent could not connect, no agent serves the target, or a
 *   rule forbids it;
 * - `timeout`: nobody answered in time; `context`: the caller gave up;
 * - `dialclosed`: the agent's side gave up; `tunnelclosed`: the connection broke;
 * - `streamsetup`: the server's frontend could not be reached or spoken to.
 */
export type DialFailure =
  | "endpoint"
  | "timeout"
  | "context"
  | "dialclosed"
  | "tunnelclosed"
  | "streamsetup";

/** Thrown by `dial`. The message is the sentence of the one that refused. */
export class TunnelDialError extends Error {
  /** Tells it from other errors, also by its text. */
  override readonly name = "TunnelDialError";

  /** The id of the dial in the logs of all programs on the way. */
  connectionId?: ConnectionId;

  /** What `tunnel explain` and docs/reference/errors.md say more of. */
  get tunnelCode(): string {
    return tunnelCodeOf(this.cause) ?? FAILURE_CODES[this.reason];
  }

  /**
   * Says why a dial failed.
   *
   * @param reason In Konnectivity's words.
   * @param message The sentence of the one that refused.
   * @param cause What went wrong below, if anything.
   */
  constructor(readonly reason: DialFailure, message: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
  }
}

const FAILURE_CODES: Readonly<Record<DialFailure, Code>> = {
  endpoint: "TUN506",
  timeout: "TUN502",
  context: "TUN509",
  dialclosed: "TUN403",
  tunnelclosed: "TUN403",
  streamsetup: "TUN401",
};

const REASONS: Readonly<Record<DialError["reason"], DialFailure>> = {
  endpoint: "endpoint",
  "no-agent": "endpoint",
  refused: "endpoint",
  timeout: "timeout",
  cancelled: "context",
  "link-lost": "tunnelclosed",
  "dial-closed": "dialclosed",
};

/** Translates an error on the wire into the client's words. */
export function toTunnelDialError(error: DialError): TunnelDialError {
  return new TunnelDialError(REASONS[error.reason], error.message, error);
}

// How a connection through the tunnel ended, as errors for its readers and
// writers.

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

/** `clean` comes here too: later writes reach no reader. */
export function errorOf(end: ConduitEnd): Error {
  if (end.kind === "lost") return new TunnelLostError(end.reason);
  return new TunnelResetError(
    end.kind === "reset" ? end.reason : "the connection is over",
  );
}
