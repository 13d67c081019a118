/**
 * What a node may say that it serves: addresses besides its own name, and
 * services for others.
 *
 * @module
 */

import {
  IdentifiersError,
  NO_IDENTIFIERS,
  parseIdentifiers,
} from "../../proto/peer/identifiers.ts";
import type { Identifiers } from "../../proto/peer/identifiers.ts";
import { Wildcard } from "../../policy/wildcard.ts";
import { SERVICE_PATTERN } from "./discovery_entry.ts";
import {
  as,
  FULL_TEXT,
  list,
  map,
  type MeaningOf,
  type Shape,
} from "../../platform/documents/shape.ts";

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

/** One entry as it is written. */
export const NODE_GRANTS: Shape<NodeGrants> = as(
  GRANTS,
  (given) => new NodeGrants(given),
);

/** One entry of a policy's `nodes`. */
export class NodeGrants {
  readonly identifiers: Identifiers;
  /** Services that it may announce; absent: the entry does not speak of them. */
  readonly services?: readonly Wildcard[];
  readonly #name: Wildcard;

  constructor(
    { name, identifiers = [], services }: MeaningOf<typeof GRANTS>,
  ) {
    this.#name = new Wildcard(name.toLowerCase());
    this.identifiers = joinedGrants(identifiers);
    if (services !== undefined) this.services = services;
  }

  isAbout(node: string): boolean {
    return this.#name.matches(node.toLowerCase());
  }
}

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
