/**
 * What is dialed, and why a dial fails.
 *
 * @module
 */

import type { Code } from "../codes/codes.ts";

/** Why a dial failed. Konnectivity's words stay in `message`. */
export type DialFailureReason =
  /** The agent tried and could not (`message` is its text). */
  | "endpoint"
  | "timeout"
  /** The caller gave up. */
  | "cancelled"
  /** The link went while the dial was pending. */
  | "link-lost"
  /** The agent closed the pending dial (DIAL_CLS). */
  | "dial-closed"
  /** No agent serves the target. */
  | "no-agent"
  /** A rule of the server's or the agent's forbids it. */
  | "refused";

/** How a dial was lost on its way to the dialing end. */
export type DialLoss =
  /**
   * It was certainly not processed: it can be made again, whatever it contains.
   */
  | "unprocessed"
  /** It may have been: data sent with it must not be sent again. */
  | "unanswered";

/** Thrown (or handed over) when a dial fails. */
export class DialError extends Error {
  override readonly name = "DialError";

  /**
   * @param loss Why there was no answer; absent: there was one.
   * @param tunnelCode Where more is known than the reason says.
   */
  constructor(
    readonly reason: DialFailureReason,
    message: string,
    readonly loss?: DialLoss,
    readonly tunnelCode: Code = REASON_CODES[reason],
  ) {
    super(message);
  }
}

const REASON_CODES: Readonly<Record<DialFailureReason, Code>> = {
  endpoint: "TUN506",
  timeout: "TUN502",
  cancelled: "TUN509",
  "link-lost": "TUN403",
  "dial-closed": "TUN403",
  "no-agent": "TUN501",
  refused: "TUN601",
};

/**
 * Whether an agent could not even make a socket: an answer about its machine, and
 * none about the target, which it never reached. The words are those of Go's
 * agents, too, and all that the packets carrier brings.
 */
export function lacksDescriptors(
  { reason, message }: Pick<DialError, "reason" | "message">,
): boolean {
  return reason === "endpoint" && /too many open files/i.test(message);
}

/** What is to be dialed. */
export interface DialTarget {
  /** `tcp`, `udp` or `unix`. */
  readonly protocol: string;
  /** `host:port`, or a path for `unix`. */
  readonly address: string;
}
