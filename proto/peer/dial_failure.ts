/**
 * Why a dial failed, for peers that read more than DIAL_RSP's text.
 *
 * Konnectivity's DIAL_RSP carries words only. Between our own ends the reason
 * travels in the response head, so that a client need not search a text.
 *
 * @module
 */

import { type Code, knownCode } from "../codes/codes.ts";
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
  [/no route to host|network is unreachable/, "TUN504"],
  [/no such host|server misbehaving/, "TUN505"],
  [/too many open files/, "TUN513"],
  [/unknown network|missing port in address/, "TUN101"],
  [/^Cannot dial .*: refused by the agent's rule /s, "TUN603"],
  [/^Cannot dial .*: refused, no rule of the agent /s, "TUN604"],
];

/** The code of a dial that failed with these words. */
export function codeOfWords(
  reason: DialFailureReason,
  words: string,
): Code | undefined {
  if (reason !== "endpoint") return undefined;
  return WORDS.find(([form]) => form.test(words))?.[1];
}
