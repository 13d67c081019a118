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
  type Shape,
  text,
} from "../../platform/documents/shape.ts";
import {
  SEES_EVERYTHING,
  type Visibility,
} from "../../services/catalog/visibility.ts";
import {
  type Identifiers,
  IdentifiersError,
  NO_IDENTIFIERS,
  parseIdentifiers,
} from "../../proto/peer/identifiers.ts";

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

/** Which nodes a pattern means, whatever the spelling. */
export function nodeTest(text: string): (node: string) => boolean {
  const pattern = new Wildcard(text.toLowerCase());
  return (node) => pattern.matches(node.toLowerCase());
}

/** One entry of `discovery`. */
export interface DiscoveryEntry {
  readonly allow: readonly Wildcard[];
  readonly deny: readonly Wildcard[];
  /** @param node Empty for clients that are no node. */
  isAbout(node: string): boolean;
}

/** One entry as it is written. */
export const DISCOVERY_ENTRY: Shape<DiscoveryEntry> = as(
  ENTRY,
  ({ node, allow = [], deny = [] }) => ({
    ...{ allow, deny },
    isAbout: nodeTest(node),
  }),
);

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

// What a node may say that it serves: addresses besides its own name, and
// services for others.

const GRANT: Shape<Identifiers> = as(FULL_TEXT, (text, at) => {
  const key = text.split("=", 1)[0]!;
  if (key === "host" || key === "uid") {
    return at.say(
      `"${key}" cannot be granted: a node's host and uid are its own name`,
    );
  }
  try {
    return parseIdentifiers(text, "flag");
  } catch (error) {
    if (!(error instanceof IdentifiersError)) throw error;
    return at.say(
      `${error.message}; write cidr=10.0.0.0/8, ipv4=10.0.0.7, ipv6=fd00::7 ` +
        "or default-route=true",
    );
  }
});

const GRANTS = map({
  name: FULL_TEXT,
  identifiers: list(GRANT),
  services: list(SERVICE_PATTERN),
}, {
  isStrict: true,
  required: { name: "it is missing; add it" },
  someOf: [[
    ["identifiers", "services"],
    "it grants neither identifiers nor services; add one of them",
  ]],
});

/** One entry of a policy's `nodes`. */
export interface NodeGrants {
  readonly identifiers: Identifiers;
  /** Services that it may announce; absent: the entry does not speak of them. */
  readonly services: readonly Wildcard[] | undefined;
  isAbout(node: string): boolean;
}

/** One entry as it is written. */
export const NODE_GRANTS: Shape<NodeGrants> = as(
  GRANTS,
  ({ name, identifiers = [], services }) => ({
    ...{ services, identifiers: joinedGrants(identifiers) },
    isAbout: nodeTest(name),
  }),
);

/** All of `several` together. */
export function joinedGrants(several: readonly Identifiers[]): Identifiers {
  const all = (of: (one: Identifiers) => readonly string[]) =>
    several.flatMap(of);
  return {
    ...NO_IDENTIFIERS,
    ipv4: all(({ ipv4 }) => ipv4),
    ipv6: all(({ ipv6 }) => ipv6),
    cidr: all(({ cidr }) => cidr),
    defaultRoute: several.some(({ defaultRoute }) => defaultRoute),
  };
}
