/**
 * The error that a caller receives whose dial a rule forbids, and the HTTP status of
 * any dial that failed.
 *
 * @module
 */

import type { RuleDecision } from "./rule_set.ts";
import type { Code } from "../proto/codes/codes.ts";
import {
  DialError,
  type DialTarget,
  lacksDescriptors,
} from "../proto/peer/dial_error.ts";
import { clipped } from "../proto/peer/quoted.ts";

/** Longest target that a refusal repeats: peers choose it. */
const TARGET_LENGTH_MAX = 200;

/** The part that refuses, and the remedy for its user. */
export type Refuser = "agent" | "server";

const REMEDY: Readonly<Record<Refuser, string>> = {
  agent: "add an --allow rule for it there",
  server: "add an allow rule for it to its policy file",
};

const CODES_OF: Readonly<Record<Refuser, Code>> = {
  agent: "TUN603",
  server: "TUN601",
};

/**
 * The error of a dial that `decision` forbids.
 *
 * @param via What the target turned out to be, such as an address of its name.
 */
export function refusal(
  who: Refuser,
  { protocol, address }: DialTarget,
  { rule, note }: RuleDecision,
  via?: string,
): DialError {
  const target = clipped(`${protocol} ${address}`, TARGET_LENGTH_MAX);
  const shown = via === undefined ? target : `${target} (${via})`;
  const why = note === undefined ? "" : ` (${note})`;
  const decision = rule === ""
    ? `refused, no rule of the ${who} allows it${why}; ${REMEDY[who]}`
    : `refused by the ${who}'s rule ${rule}${why}`;
  return new DialError(
    "refused",
    `Cannot dial ${shown}: ${decision}`,
    { code: CODES_OF[who] },
  );
}

/**
 * Whether an error's text is one of {@linkcode refusal}, for protocols that carry
 * nothing else than the text.
 */
export function isRefusalByRule(message: string): boolean {
  return /^Cannot dial .*: refused(?: by the agent's rule |, no rule of the agent )/s
    .test(message);
}

/** The status for a failed dial (Konnectivity classifies by the text, too). */
export function dialFailureStatus(error: DialError): number {
  const { reason, message } = error;
  switch (reason) {
    case "no-agent":
      return 503;
    case "timeout":
      return 504;
    case "refused":
      return 403;
    case "endpoint":
      // The packets carrier brings an agent's words and nothing else.
      if (isRefusalByRule(message)) return 403;
      if (/i\/o timeout|deadline exceeded|timeout/i.test(message)) return 504;
      return lacksDescriptors(error) ? 503 : 502;
    case "cancelled":
    case "link-lost":
    case "dial-closed":
      return 502;
  }
}
