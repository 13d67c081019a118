/**
 * What a node may say that it serves, besides its own name.
 *
 * @module
 */

import {
  IdentifiersError,
  NO_IDENTIFIERS,
  parseIdentifiers,
} from "../../proto/link/identifiers.ts";
import type { Identifiers } from "../../proto/link/link.ts";
import { Wildcard } from "../../host/policy/wildcard.ts";
import { FieldError, Fields } from "./fields.ts";

/** One entry of a policy's `nodes`. */
export class NodeGrants {
  readonly identifiers: Identifiers;
  readonly #name: Wildcard;

  /** @throws {FieldError} */
  constructor(value: unknown, place: string) {
    const fields = new Fields(value, place, ["name", "identifiers"]);
    const name = fields.text("name");
    const identifiers = fields.texts("identifiers");
    if (name === undefined || identifiers === undefined) {
      const missing = name === undefined ? "name" : "identifiers";
      throw new FieldError(fields.placeOf(missing), "it is missing; add it");
    }
    this.#name = new Wildcard(name.toLowerCase());
    this.identifiers = joined(
      identifiers.map(([text, at]) => grantOf(text, at)),
    );
  }

  isAbout(node: string): boolean {
    return this.#name.matches(node.toLowerCase());
  }
}

/** All of `several` together. */
export function joined(several: readonly Identifiers[]): Identifiers {
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

function grantOf(text: string, place: string): Identifiers {
  const key = text.split("=", 1)[0]!;
  if (key === "host" || key === "uid") {
    throw new FieldError(
      place,
      `"${key}" cannot be granted: a node's host and uid are its own name`,
    );
  }
  try {
    return parseIdentifiers(text, "flag");
  } catch (error) {
    if (!(error instanceof IdentifiersError)) throw error;
    throw new FieldError(
      place,
      `${error.message}; write cidr=10.0.0.0/8, ipv4=10.0.0.7, ipv6=fd00::7 ` +
        "or default-route=true",
    );
  }
}
