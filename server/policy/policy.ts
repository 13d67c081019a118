/**
 * A policy: which caller may reach which targets behind which nodes, which
 * addresses and services a node may claim to serve, which services it sees, and
 * what it may dial. Pure.
 *
 * @module
 */

import {
  type LabelledRule,
  missesOf,
  type NearMiss,
  NOT_ALLOWED,
  type RuleDecision,
  RuleSet,
} from "../../policy/rule_set.ts";
import { subjectOf } from "../../policy/subject.ts";
import type { DialTarget } from "../../proto/peer/dial_error.ts";
import {
  type Identifiers,
  joinedIdentifiers,
} from "../../proto/peer/identifiers.ts";
import type { AdminRole } from "../../proto/admin/api.ts";
import {
  ADMIN_ENTRY,
  type AdminCandidate,
  type AdminEntry,
  DISCOVERY_ENTRY,
  type DiscoveryEntry,
  NODE_GRANTS,
  type NodeGrants,
  visibilityOf,
} from "./grant_entries.ts";
import { type Caller, callerName } from "./caller.ts";
import {
  type DocumentPath,
  pathText,
} from "../../platform/documents/field_error.ts";
import {
  as,
  list,
  map,
  readShape,
  type Shape,
} from "../../platform/documents/shape.ts";
import {
  FRONTEND_ENTRY,
  NODE_DIAL_ENTRY,
  type RuleEntry,
} from "./dial_entries.ts";
import type { Visibility } from "../../services/catalog/model/model.ts";

/** Most entries and rules of a document, to bound what a dial may cost. */
export const ENTRIES_MAX = 1_000;
const RULES_MAX = 10_000;

/** Combinations of entries that are kept ready. */
const RULE_SETS_MAX = 256;

function entries<Entry>(of: Shape<Entry>): Shape<readonly Entry[]> {
  return list(of, { most: ENTRIES_MAX });
}

function rules<Who>(
  of: Shape<RuleEntry<Who>>,
): Shape<readonly RuleEntry<Who>[]> {
  return as(entries(of), (entries, at) => {
    const count = entries
      .reduce((sum, { allow, deny }) => sum + allow.length + deny.length, 0);
    return count <= RULES_MAX
      ? entries
      : at.say(`saw ${count} rules, ${RULES_MAX} are allowed`);
  });
}

/** `--policy-file`. */
export const POLICY = map({
  frontends: rules(FRONTEND_ENTRY),
  nodes: entries(NODE_GRANTS),
  discovery: entries(DISCOVERY_ENTRY),
  dials: rules(NODE_DIAL_ENTRY),
  admins: entries(ADMIN_ENTRY),
}, { isStrict: true });

/** A policy document, ready to be evaluated. */
export class Policy {
  /** Absent: callers are not restricted. */
  readonly #frontends: readonly RuleEntry<Caller>[] | undefined;
  readonly #nodes: readonly NodeGrants[];
  /** Absent: every node sees every service. */
  readonly #discovery: readonly DiscoveryEntry[] | undefined;
  /** What nodes may dial besides services that they see. */
  readonly #dials: readonly RuleEntry<string>[];
  readonly #admins: readonly AdminEntry[];
  readonly #ruleSets = new Map<string, RuleSet>();

  /**
   * @param document What was read from a file.
   * @throws {FieldError}
   */
  constructor(document: unknown) {
    const { frontends, nodes = [], discovery, dials = [], admins = [] } =
      readShape(POLICY, document);
    this.#frontends = frontends;
    this.#nodes = nodes;
    this.#discovery = discovery;
    this.#dials = dials;
    this.#admins = admins;
  }

  /**
   * Evaluates a dial.
   *
   * All entries for the caller and the node count together: a denial by one of
   * them wins over all others.
   *
   * @param nodes The names of the agent that would be asked.
   */
  evaluate(
    caller: Caller,
    nodes: readonly string[],
    target: DialTarget,
  ): RuleDecision {
    if (this.#frontends === undefined) return UNRESTRICTED;
    const about = this.#frontends.filter((entry) => entry.isAbout(caller));
    if (about.length === 0) {
      const note = `no frontends entry is about ${callerName(caller)}`;
      return { ...NOT_ALLOWED, note };
    }
    const here = about.filter((entry) => entry.isAboutNode(nodes));
    if (here.length === 0) {
      const node = nodes.length === 0 ? "no node" : `node ${nodes[0]}`;
      const note = `no entry about ${callerName(caller)} is about ${node}`;
      return { ...NOT_ALLOWED, note };
    }
    return this.#rulesOf(here).evaluateUnresolved(subjectOf(target));
  }

  /**
   * Evaluates a dial of a node's, as far as rules go: what none of them is about
   * depends on the services that it may see.
   *
   * @param nodes The names of the agent that would be asked.
   */
  evaluateNode(
    node: string,
    nodes: readonly string[],
    target: DialTarget,
  ): RuleDecision {
    const about = this.#dials.filter((entry) =>
      entry.isAbout(node) && entry.isAboutNode(nodes)
    );
    if (about.length === 0) return NOT_ALLOWED;
    return this.#rulesOf(about).evaluateUnresolved(subjectOf(target));
  }

  /**
   * The rule that is nearest to allowing a dial that none allows, and what of it
   * does not fit.
   *
   * @param caller Who dials: a caller, or the name of a node.
   * @param nodes The names of the agent that would be asked.
   */
  nearest(
    caller: Caller | string,
    nodes: readonly string[],
    target: DialTarget,
  ): NearMiss | undefined {
    const subject = subjectOf(target);
    const entries = typeof caller === "string"
      ? this.#dials.map((entry) => ({ entry, isAbout: entry.isAbout(caller) }))
      : (this.#frontends ?? [])
        .map((entry) => ({ entry, isAbout: entry.isAbout(caller) }));
    const who = typeof caller === "string"
      ? `node ${caller}`
      : callerName(caller);
    const where = nodes.length === 0 ? "no node in particular" : nodes[0]!;
    const candidates = entries.flatMap(({ entry, isAbout }) => {
      const misses = [
        isAbout ? [] : [`its entry is not about ${who}`],
        entry.isAboutNode(nodes) ? [] : [`its entry is not about ${where}`],
      ].flat();
      return entry.allow.map((labelled) => ({
        labelled,
        misses: [...misses, ...missesOf(labelled.rule, subject)],
      }));
    });
    // Of two equally near rules, the first in the file.
    return candidates.sort((a, b) => a.misses.length - b.misses.length)[0];
  }

  /** The place of the rule with this name; see `RuleDecision.rule`. */
  placeOf(label: string): DocumentPath | undefined {
    for (const entry of [...this.#frontends ?? [], ...this.#dials]) {
      for (const labelled of [...entry.allow, ...entry.deny]) {
        if (labelled.label === label) return labelled.place;
      }
    }
    return undefined;
  }

  /** Whether `node` may announce a service, `namespace/name`. */
  mayOffer(node: string, service: string): boolean {
    // Without an entry about services, any node may use any name.
    if (!this.#nodes.some(({ services }) => services !== undefined)) {
      return true;
    }
    return this.#nodes.some((grants) =>
      grants.isAbout(node) &&
      grants.services?.some((pattern) => pattern.matches(service)) === true
    );
  }

  /** What `node` may say that it serves, besides its own name. */
  grantsOf(node: string): Identifiers {
    const about = this.#nodes.filter((grants) => grants.isAbout(node));
    return joinedIdentifiers(about.map(({ identifiers }) => identifiers));
  }

  /**
   * The services that `node` sees.
   *
   * @param node Empty for clients that are no node.
   */
  visibleTo(node: string): Visibility {
    return visibilityOf(this.#discovery, node);
  }

  /**
   * The rights of a person on the admin port; `undefined`: no entry names that
   * person.
   */
  adminRoleOf(candidate: AdminCandidate): AdminRole | undefined {
    const roles = this.#admins.filter((entry) => entry.isAbout(candidate))
      .map(({ role }) => role);
    return roles.includes("operate") ? "operate" : roles[0];
  }

  #rulesOf(entries: readonly RuleEntry<never>[]): RuleSet {
    const key = entries.map(({ place }) => pathText(place)).join();
    let rules = this.#ruleSets.get(key);
    if (rules === undefined) {
      if (this.#ruleSets.size >= RULE_SETS_MAX) this.#ruleSets.clear();
      const all = (of: (entry: RuleEntry<never>) => readonly LabelledRule[]) =>
        entries.flatMap(of);
      rules = new RuleSet({
        allow: all(({ allow }) => allow),
        deny: all(({ deny }) => deny),
      });
      this.#ruleSets.set(key, rules);
    }
    return rules;
  }
}

/** The same as without a policy file: nobody is restricted. */
export const NO_RULES: Policy = new Policy({});

/** The decision where callers are not restricted. */
export const UNRESTRICTED: RuleDecision = {
  isAllowed: true,
  rule: "none were given",
};
