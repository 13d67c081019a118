/**
 * Entries of a policy that grant something beside dials: which services nodes see
 * (`discovery`), what they may claim to serve (`nodes`), and who may ask the server
 * about itself (`admins`).
 *
 * @module
 */

import { Wildcard } from "../../policy/wildcard.ts";
import {
  as,
  FULL_TEXT,
  list,
  map,
  number,
  type Shape,
  text,
  word,
} from "../../platform/documents/shape.ts";
import {
  SEES_EVERYTHING,
  type Visibility,
} from "../../services/catalog/model/model.ts";
import {
  type Identifiers,
  IdentifiersError,
  joinedIdentifiers,
  parseIdentifiers,
} from "../../proto/peer/identifiers.ts";
import type { AdminRole } from "../../proto/admin/api.ts";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import { CERTIFICATE_FIELDS, certificateTest } from "./caller.ts";

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

/** Entries that allow or deny a dial. */
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

/** The nodes that match a pattern, in any spelling. */
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

/** One entry in the file. */
export const DISCOVERY_ENTRY: Shape<DiscoveryEntry> = as(
  ENTRY,
  ({ node, allow = [], deny = [] }) => ({
    allow,
    deny,
    isAbout: nodeTest(node),
  }),
);

/**
 * What `node` sees by all entries together: a denial by one entry wins over all
 * others, and a service that no entry allows is hidden.
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

// A node's permitted announcements: addresses besides its own name, and
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

/** One entry in the file. */
export const NODE_GRANTS: Shape<NodeGrants> = as(
  GRANTS,
  ({ name, identifiers = [], services }) => ({
    services,
    identifiers: joinedIdentifiers(identifiers),
    isAbout: nodeTest(name),
  }),
);

// An entry of a policy's `admins`: the people who may ask a server about
// itself, or operate it: from another machine by certificate, or on this
// machine as a user of its socket.

/** More users than a machine can have. */
export const UID_MAX = 2 ** 32 - 1;

/** Whom an entry may be about. */
export interface AdminCandidate {
  readonly identity?: PeerIdentity;
  /** For a process that opened the socket. */
  readonly uid?: number;
}

const ADMIN = map({
  commonName: FULL_TEXT,
  organization: FULL_TEXT,
  subjectAltName: FULL_TEXT,
  uid: number(0, UID_MAX),
  role: word<AdminRole>(["view", "operate"]),
}, {
  isStrict: true,
  required: { role: 'wanted "view" or "operate"' },
  someOf: [[
    ["uid", ...CERTIFICATE_FIELDS],
    `it names no person; add uid, or one of ${CERTIFICATE_FIELDS.join(", ")}`,
  ]],
  apart: [[
    "uid",
    CERTIFICATE_FIELDS,
    "a caller of the socket shows no certificate; make two entries",
  ]],
});

/** An entry of `admins`. */
export interface AdminEntry {
  readonly role: AdminRole;
  /** Whether all that it says of one fits. */
  isAbout(candidate: AdminCandidate): boolean;
}

/** One entry in the file. */
export const ADMIN_ENTRY: Shape<AdminEntry> = as(
  ADMIN,
  ({ role, uid: wanted, ...patterns }) => {
    const fits = certificateTest(patterns);
    return {
      role,
      isAbout: ({ identity, uid }) =>
        wanted === undefined
          ? identity !== undefined && fits(identity)
          : uid === wanted,
    };
  },
);
