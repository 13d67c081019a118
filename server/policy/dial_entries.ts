/**
 * Entries of a policy with rules about dials: of `frontends` for callers, of
 * `dials` for nodes. Each entry says whom it is about, and which targets behind
 * which nodes it allows and denies them.
 *
 * @module
 */

import { parseRule, RuleError } from "../../policy/rule.ts";
import type { LabelledRule } from "../../policy/rule_set.ts";
import { Wildcard } from "../../policy/wildcard.ts";
import { type Caller, socketOf } from "./caller.ts";
import {
  DocumentMap,
  type DocumentPath,
  FieldError,
  pathText,
} from "../../platform/documents/document_map.ts";

const WHO = ["commonName", "organization", "subjectAltName", "socket"] as const;
const FIELDS = [...WHO, "nodes", "allow", "deny"];

/** An entry with rules about targets. */
export interface RuleEntry {
  /** Where it stands, such as `frontends[2]`. */
  readonly place: DocumentPath;
  readonly allow: readonly LabelledRule[];
  readonly deny: readonly LabelledRule[];
}

/** An entry of `frontends`. */
export class FrontendEntry implements RuleEntry {
  readonly allow: readonly LabelledRule[];
  readonly deny: readonly LabelledRule[];
  readonly #who: ReadonlyMap<(typeof WHO)[number], Wildcard>;
  readonly #nodes: readonly Wildcard[];

  /** @throws {FieldError} */
  constructor(value: unknown, readonly place: DocumentPath) {
    const fields = new DocumentMap(value, place, FIELDS).refuseEmpty();
    this.#who = whoIn(fields);
    const { nodes, allow, deny } = rulesIn(fields);
    this.#nodes = nodes;
    this.allow = allow;
    this.deny = deny;
  }

  /** Whether the entry is about `caller`: all that it says of one must fit. */
  isAbout(caller: Caller): boolean {
    const { commonName, names, certificate, kind } = caller.identity;
    const values = {
      commonName: [commonName],
      organization: certificate?.organizations ?? [],
      subjectAltName: names,
      socket: [socketOf(caller)],
    };
    for (const [field, pattern] of this.#who) {
      if ((field === "socket") === (kind === "certificate")) return false;
      if (!values[field].some((value) => pattern.matches(value))) return false;
    }
    return true;
  }

  /** Whether it is about an agent that has these names. */
  isAboutNode(names: readonly string[]): boolean {
    return fitsNode(this.#nodes, names);
  }
}

/** An entry of `dials`. */
export class NodeDialEntry implements RuleEntry {
  readonly allow: readonly LabelledRule[];
  readonly deny: readonly LabelledRule[];
  readonly #caller: Wildcard;
  readonly #nodes: readonly Wildcard[];

  /** @throws {FieldError} */
  constructor(value: unknown, readonly place: DocumentPath) {
    const known = ["node", "nodes", "allow", "deny"];
    const fields = new DocumentMap(value, place, known).refuseEmpty();
    const node = fields.text("node") ?? fields.refuse(
      "node",
      'it is missing; add the name of the node that dials, or "*" for all',
    );
    const { nodes, allow, deny } = rulesIn(fields);
    this.#caller = new Wildcard(node.toLowerCase());
    this.#nodes = nodes;
    this.allow = allow;
    this.deny = deny;
  }

  /** @param node The one that dials. */
  isAbout(node: string): boolean {
    return this.#caller.matches(node.toLowerCase());
  }

  /** Whether it is about dials of an agent that has these names. */
  isAboutNode(names: readonly string[]): boolean {
    return fitsNode(this.#nodes, names);
  }
}

/** Whether patterns are about an agent that has these names. */
function fitsNode(
  patterns: readonly Wildcard[],
  names: readonly string[],
): boolean {
  return patterns.some((pattern) =>
    names.some((name) => pattern.matches(name.toLowerCase())) ||
    pattern.pattern === "*"
  );
}

/**
 * What an entry says of targets: behind which nodes, and which of them.
 *
 * @throws {FieldError}
 */
function rulesIn(fields: DocumentMap): {
  readonly nodes: readonly Wildcard[];
  readonly allow: readonly LabelledRule[];
  readonly deny: readonly LabelledRule[];
} {
  const nodes = fields.texts("nodes") ?? [["*"] as const];
  const allow = fields.texts("allow");
  const deny = fields.texts("deny");
  if (allow === undefined && deny === undefined) {
    throw new FieldError(
      fields.place,
      "it neither allows nor denies anything; add allow or deny",
    );
  }
  return {
    nodes: nodes.map(([text]) => new Wildcard(text.toLowerCase())),
    allow: (allow ?? []).map(labelledRule),
    deny: (deny ?? []).map(labelledRule),
  };
}

function whoIn(fields: DocumentMap) {
  const who = new Map<(typeof WHO)[number], Wildcard>();
  for (const key of WHO) {
    const text = fields.text(key);
    if (text !== undefined) who.set(key, new Wildcard(text));
  }
  if (who.size === 0) {
    throw new FieldError(
      fields.place,
      `it says nobody; add one of ${WHO.join(", ")} ("*" is everybody)`,
    );
  }
  if (who.has("socket") && who.size > 1) {
    fields.refuse(
      "socket",
      "a caller on a unix socket shows no certificate; make two entries",
    );
  }
  return who;
}

function labelledRule(
  [text, place]: readonly [string, DocumentPath],
): LabelledRule {
  try {
    const rule = parseRule(text);
    return { rule, label: `${pathText(place)} ${rule.text}`, place };
  } catch (error) {
    if (!(error instanceof RuleError)) throw error;
    throw new FieldError(place, error.message);
  }
}
