/**
 * Entries of a policy with rules about dials: of `frontends` for callers, of
 * `dials` for nodes. Each entry names its callers or nodes, and the targets
 * behind nodes that they may and may not dial.
 *
 * @module
 */

import { parseRule, RuleError } from "../../policy/rule.ts";
import type { LabelledRule } from "../../policy/rule_set.ts";
import { Wildcard } from "../../policy/wildcard.ts";
import {
  type Caller,
  CERTIFICATE_FIELDS,
  certificateTest,
  socketOf,
} from "./caller.ts";
import {
  type DocumentPath,
  pathText,
} from "../../platform/documents/field_error.ts";
import {
  as,
  FULL_TEXT,
  list,
  map,
  type Shape,
  text,
} from "../../platform/documents/shape.ts";
import { DECIDES, nodeTest } from "./grant_entries.ts";

const WHO = [...CERTIFICATE_FIELDS, "socket"] as const;

/** An entry with rules about targets, for callers or for nodes that dial. */
export interface RuleEntry<Who> {
  /** Its place in the policy, such as `frontends[2]`. */
  readonly place: DocumentPath;
  readonly allow: readonly LabelledRule[];
  readonly deny: readonly LabelledRule[];
  /** Whether it matches a caller: all its patterns must match. */
  isAbout(who: Who): boolean;
  /** Whether it is about dials of an agent that has these names. */
  isAboutNode(names: readonly string[]): boolean;
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
    [
      WHO,
      `it names no caller; add one of ${WHO.join(", ")} ("*" is every caller)`,
    ],
    DECIDES,
  ],
  apart: [[
    "socket",
    CERTIFICATE_FIELDS,
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

/** One entry of `frontends` in the file. */
export const FRONTEND_ENTRY: Shape<RuleEntry<Caller>> = as(
  FRONTEND,
  ({ socket, ...given }, { place }) => {
    const fits = certificateTest(given);
    const path = socket === undefined ? undefined : new Wildcard(socket);
    return {
      ...ruleEntry(given, place),
      isAbout: (caller) =>
        path === undefined
          ? fits(caller.identity)
          : caller.identity.kind !== "certificate" &&
            path.matches(socketOf(caller)),
    };
  },
);

/** One entry of `dials` in the file, by the name of the dialing node. */
export const NODE_DIAL_ENTRY: Shape<RuleEntry<string>> = as(
  NODE_DIAL,
  (given, { place }) => ({
    ...ruleEntry(given, place),
    isAbout: nodeTest(given.node),
  }),
);

/** Without a word about nodes an entry is about all of them. */
function ruleEntry(
  { nodes = ["*"], allow = [], deny = [] }: Partial<
    Record<"allow" | "deny", readonly LabelledRule[]> & {
      readonly nodes: readonly string[];
    }
  >,
  place: DocumentPath,
): Omit<RuleEntry<never>, "isAbout"> {
  const isAll = nodes.includes("*");
  const tests = nodes.map(nodeTest);
  return {
    place,
    allow,
    deny,
    // An agent that is not known has no name.
    isAboutNode: (names) =>
      isAll || tests.some((fits) => names.some((name) => fits(name))),
  };
}
