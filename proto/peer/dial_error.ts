/**
 * What is dialed, and why a dial fails.
 *
 * @module
 */

/** Why a dial failed. Konnectivity's words stay in `message`. */
export type DialFailureReason =
  /** The agent tried and could not (`message` is its text). */
  | "endpoint"
  | "timeout"
  /** Whoever asked gave up. */
  | "cancelled"
  /** The link went while the dial was pending. */
  | "link-lost"
  /** The agent closed the pending dial (DIAL_CLS). */
  | "dial-closed"
  /** No agent serves the target. */
  | "no-agent"
  /** A rule of the server's or the agent's forbids it. */
  | "refused";

/** How a dial was lost on the way to whoever was asked. */
export type DialLoss =
  /** It was certainly not looked at: it can be made again, whatever it said. */
  | "unheard"
  /** It may have been: what was said with it must not be said again. */
  | "unanswered";

/** Thrown (or handed over) when a dial fails. */
export class DialError extends Error {
  override readonly name = "DialError";

  /** @param loss That nobody answered, and why; absent: somebody did. */
  constructor(
    readonly reason: DialFailureReason,
    message: string,
    readonly loss?: DialLoss,
  ) {
    super(message);
  }
}

/** What is to be dialed. */
export interface DialTarget {
  /** `tcp`, `udp` or `unix`. */
  readonly protocol: string;
  /** `host:port`, or a path for `unix`. */
  readonly address: string;
}
