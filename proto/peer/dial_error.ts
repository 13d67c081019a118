/**
 * What is dialed, and why a dial fails.
 *
 * @module
 */

import { type Code, knownCode } from "../codes/codes.ts";
import type { Metadata } from "../grpc/metadata.ts";

/** Why a dial failed. Konnectivity's words stay in `message`. */
type DialFailureReason =
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
type DialLoss =
  /** It was certainly not processed: any request can be repeated. */
  | "unprocessed"
  /** It may have been: data sent with it must not be sent again. */
  | "unanswered";

/** Thrown (or handed over) when a dial fails. */
export class DialError extends Error {
  override readonly name = "DialError";

  /** Why there was no answer; `undefined`: there was one. */
  readonly loss: DialLoss | undefined;
  /** Used when more is known than the reason says. */
  readonly tunnelCode: Code;

  constructor(
    readonly reason: DialFailureReason,
    message: string,
    { loss, code = REASON_CODES[reason] }: {
      readonly loss?: DialLoss | undefined;
      readonly code?: Code | undefined;
    } = {},
  ) {
    super(message);
    this.loss = loss;
    this.tunnelCode = code;
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

/** The target of a dial. */
export interface DialTarget {
  /** `tcp`, `udp` or `unix`. */
  readonly protocol: string;
  /** `host:port`, or a path for `unix`. */
  readonly address: string;
}

// Why a dial failed, for peers that read more than DIAL_RSP's text.
//
// Konnectivity's DIAL_RSP carries words only. Between our own ends the reason
// travels in the response head, so that a client need not search a text.

/** The metadata field; its value is one of `DialFailureReason`. */
export const DIAL_FAILURE_FIELD = "tunnel-dial-failure";

/** The reason in `metadata`; `endpoint`, Konnectivity's only one, without. */
export function dialFailureOf(
  metadata: Metadata | undefined,
): DialFailureReason {
  const reason = metadata?.text(DIAL_FAILURE_FIELD) ?? "";
  return Object.hasOwn(REASON_CODES, reason)
    ? reason as DialFailureReason
    : "endpoint";
}

/** The code that a peer gave, if it is one that is known here. */
export function codeNamed(text: string | undefined): Code | undefined {
  return text === undefined ? undefined : knownCode(text);
}

/**
 * What the words of a failed dial mean that came without a code: those of Go's
 * `net` package, as Konnectivity's agents send them, and those of an agent of
 * ours over Konnectivity's protocol, which has no room for more.
 */
const WORDS: readonly (readonly [RegExp, Code])[] = [
  [/connection refused|connect: no such file/, "TUN503"],
  [/i\/o timeout|connection timed out|deadline exceeded/, "TUN502"],
  [/no such host|server misbehaving/, "TUN505"],
  [/too many open files/, "TUN513"],
  [/unknown network|missing port in address/, "TUN101"],
  [
    /^Cannot dial .*: refused(?: by the agent's rule |, no rule of the agent )/s,
    "TUN603",
  ],
];

/** The code of a dial that failed with these words. */
export function codeOfWords(
  reason: DialFailureReason,
  words: string,
): Code | undefined {
  if (reason !== "endpoint") return undefined;
  return WORDS.find(([form]) => form.test(words))?.[1];
}
