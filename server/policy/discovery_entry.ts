/**
 * One entry of a policy's `discovery`: which nodes it is about, and which
 * services it lets them see and hides from them.
 *
 * @module
 */

import { Wildcard } from "../../policy/wildcard.ts";
import {
  DocumentMap,
  type DocumentPath,
  FieldError,
} from "../../platform/documents/document_map.ts";
import {
  SEES_EVERYTHING,
  type Visibility,
} from "../../services/catalog/visibility.ts";

/** One entry of `discovery`. */
export class DiscoveryEntry {
  readonly allow: readonly Wildcard[];
  readonly deny: readonly Wildcard[];
  readonly #node: Wildcard;

  /** @throws {FieldError} */
  constructor(value: unknown, place: DocumentPath) {
    const fields = new DocumentMap(value, place, ["node", "allow", "deny"])
      .refuseEmpty();
    const node = fields.text("node") ?? fields.refuse(
      "node",
      'it is missing; add a node\'s name, or "*" for all of them',
    );
    const allow = fields.texts("allow");
    const deny = fields.texts("deny");
    if (allow === undefined && deny === undefined) {
      throw new FieldError(
        place,
        "it neither allows nor denies anything; add allow or deny",
      );
    }
    this.#node = new Wildcard(node.toLowerCase());
    this.allow = (allow ?? []).map(servicePattern);
    this.deny = (deny ?? []).map(servicePattern);
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

/**
 * Which services a text means.
 *
 * @throws {FieldError}
 */
export function servicePattern(
  [text, place]: readonly [string, DocumentPath],
): Wildcard {
  if (text === "*" || text.includes("/")) return new Wildcard(text);
  throw new FieldError(
    place,
    `saw "${text}", wanted NAMESPACE/NAME such as default/${text} or ` +
      `${text}/*, or "*" for every service`,
  );
}
