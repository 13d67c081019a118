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
  type DocumentPath,
  pathText,
} from "../../platform/documents/document_map.ts";
import {
  as,
  FULL_TEXT,
  list,
  map,
  type MeaningOf,
  type Shape,
  text,
} from "../../platform/documents/shape.ts";
import { DECIDES } from "./discovery_entry.ts";

const WHO = ["commonName", "organization", "subjectAltName", "socket"] as const;

/** An entry with rules about targets. */
export interface RuleEntry {
  /** Where it stands, such as `frontends[2]`. */
  readonly place: DocumentPath;
  readonly allow: readonly LabelledRule[];
  readonly deny: readonly LabelledRule[];
}

const RULE: Shape<LabelledRule> = as(
  text(/:/, (given) => {
    try {
      parseRule(given);
      return undefined;
    } catch (error) {
      if (!(error instanceof RuleError)) throw error;
      return error.message;
    }
  }),
  (given, { place }) => {
    const rule = parseRule(given);
    return { rule, label: `${pathText(place)} ${rule.text}`, place };
  },
);

const RULES = { nodes: list(FULL_TEXT), allow: list(RULE), deny: list(RULE) };

const FRONTEND = map({
  commonName: FULL_TEXT,
  organization: FULL_TEXT,
  subjectAltName: FULL_TEXT,
  socket: FULL_TEXT,
  ...RULES,
}, {
  isStrict: true,
  someOf: [
    [WHO, `it says nobody; add one of ${WHO.join(", ")} ("*" is everybody)`],
    DECIDES,
  ],
  apart: [[
    "socket",
    WHO.filter((name) => name !== "socket"),
    "a caller on a unix socket shows no certificate; make two entries",
  ]],
});

const NODE_DIAL = map({ node: FULL_TEXT, ...RULES }, {
  isStrict: true,
  required: {
    node: 'it is missing; add the name of the node that dials, or "*" for all',
  },
  someOf: [DECIDES],
});

/** One entry of `frontends` as it is written. */
export const FRONTEND_ENTRY: Shape<FrontendEntry> = as(
  FRONTEND,
  (given, { place }) => new FrontendEntry(given, place),
);

/** One entry of `dials` as it is written. */
export const NODE_DIAL_ENTRY: Shape<NodeDialEntry> = as(
  NODE_DIAL,
  (given, { place }) => new NodeDialEntry(given, place),
);

/** An entry of `frontends`. */
export class FrontendEntry implements RuleEntry {
  readonly allow: readonly LabelledRule[];
  readonly deny: readonly LabelledRule[];
  readonly #who: ReadonlyMap<(typeof WHO)[number], Wildcard>;
  readonly #nodes: readonly Wildcard[];

  constructor(
    { nodes, allow = [], deny = [], ...who }: MeaningOf<typeof FRONTEND>,
    readonly place: DocumentPath,
  ) {
    this.#who = new Map(WHO.flatMap((name) => {
      const text = who[name];
      return text === undefined ? [] : [[name, new Wildcard(text)] as const];
    }));
    this.#nodes = nodePatterns(nodes);
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

  constructor(
    { node, nodes, allow = [], deny = [] }: MeaningOf<typeof NODE_DIAL>,
    readonly place: DocumentPath,
  ) {
    this.#caller = new Wildcard(node.toLowerCase());
    this.#nodes = nodePatterns(nodes);
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

/** Without a word about nodes an entry is about all of them. */
function nodePatterns(nodes: readonly string[] = ["*"]): readonly Wildcard[] {
  return nodes.map((text) => new Wildcard(text.toLowerCase()));
}
