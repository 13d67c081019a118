/**
 * One entry of a policy's `discovery`: which nodes it is about, and which
 * services it lets them see and hides from them.
 *
 * @module
 */

import { Wildcard } from "../../policy/wildcard.ts";
import {
  as,
  FULL_TEXT,
  list,
  map,
  type MeaningOf,
  type Shape,
  text,
} from "../../platform/documents/shape.ts";
import {
  SEES_EVERYTHING,
  type Visibility,
} from "../../services/catalog/visibility.ts";

/** Which services a text means. */
export const SERVICE_PATTERN: Shape<Wildcard> = as(
  text(
    /^\*$|\//,
    (given) =>
      given === "*" || given.includes("/")
        ? undefined
        : `saw "${given}", wanted NAMESPACE/NAME such as default/${given} or ` +
          `${given}/*, or "*" for every service`,
  ),
  (pattern) => new Wildcard(pattern),
);

/** Of entries that are about something allowed or denied. */
export const DECIDES = [
  ["allow", "deny"],
  "it neither allows nor denies anything; add allow or deny",
] as const;

const ENTRY = map({
  node: FULL_TEXT,
  allow: list(SERVICE_PATTERN),
  deny: list(SERVICE_PATTERN),
}, {
  isStrict: true,
  required: {
    node: 'it is missing; add a node\'s name, or "*" for all of them',
  },
  someOf: [DECIDES],
});

/** One entry as it is written. */
export const DISCOVERY_ENTRY: Shape<DiscoveryEntry> = as(
  ENTRY,
  (given) => new DiscoveryEntry(given),
);

/** One entry of `discovery`. */
export class DiscoveryEntry {
  readonly allow: readonly Wildcard[];
  readonly deny: readonly Wildcard[];
  readonly #node: Wildcard;

  constructor({ node, allow = [], deny = [] }: MeaningOf<typeof ENTRY>) {
    this.#node = new Wildcard(node.toLowerCase());
    this.allow = allow;
    this.deny = deny;
  }

  /** @param node Empty for clients that are no node. */
  isAbout(node: string): boolean {
    return this.#node.matches(node.toLowerCase());
  }
}

/**
 * What `node` sees by all entries together: what one of them denies no other
 * one allows, and what none allows is hidden.
 *
 * @param entries Absent: all clients see everything.
 */
export function visibilityOf(
  entries: readonly DiscoveryEntry[] | undefined,
  node: string,
): Visibility {
  if (entries === undefined) return SEES_EVERYTHING;
  const about = entries.filter((entry) => entry.isAbout(node));
  const allow = about.flatMap((entry) => entry.allow);
  const deny = about.flatMap((entry) => entry.deny);
  const isEverything = deny.length === 0 &&
    allow.some(({ pattern }) => pattern === "*");
  if (isEverything) return SEES_EVERYTHING;
  const fits = (patterns: readonly Wildcard[], service: string) =>
    patterns.some((pattern) => pattern.matches(service));
  return {
    id: JSON.stringify([texts(allow), texts(deny)]),
    sees: (service) => !fits(deny, service) && fits(allow, service),
  };
}

function texts(patterns: readonly Wildcard[]): readonly string[] {
  return [...new Set(patterns.map(({ pattern }) => pattern))].sort();
}
