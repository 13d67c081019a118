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
import { servicePattern } from "./discovery_entry.ts";
import {
  DocumentMap,
  type DocumentPath,
  FieldError,
} from "../../platform/documents/document_map.ts";

/** One entry of a policy's `nodes`. */
export class NodeGrants {
  readonly identifiers: Identifiers;
  /** Services that it may announce; absent: the entry does not speak of them. */
  readonly services?: readonly Wildcard[];
  readonly #name: Wildcard;

  /** @throws {FieldError} */
  constructor(value: unknown, place: DocumentPath) {
    const known = ["name", "identifiers", "services"];
    const fields = new DocumentMap(value, place, known).refuseEmpty();
    const name = fields.text("name") ??
      fields.refuse("name", "it is missing; add it");
    const services = fields.texts("services");
    const identifiers = fields.texts("identifiers") ??
      (services === undefined
        ? fields.refuse("identifiers", "it is missing; add it")
        : []);
    this.#name = new Wildcard(name.toLowerCase());
    this.identifiers = joined(
      identifiers.map(([text, at]) => grantOf(text, at)),
    );
    if (services !== undefined) this.services = services.map(servicePattern);
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

function grantOf(text: string, place: DocumentPath): Identifiers {
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
