/**
 * A policy: which caller may reach which targets behind which nodes, which
 * addresses a node may claim to serve, and which services it is told of. Pure.
 *
 * @module
 */

import {
  type LabelledRule,
  NOT_ALLOWED,
  RuleSet,
  type Verdict,
} from "../../host/policy/rule_set.ts";
import { subjectOf } from "../../host/policy/subject.ts";
import type { DialTarget, Identifiers } from "../../proto/link/link.ts";
import type { Visibility } from "../discovery/generate/audience.ts";
import { type Caller, nameOf } from "./caller.ts";
import { DiscoveryEntry, visibilityOf } from "./discovery_entry.ts";
import { FieldError, Fields } from "./fields.ts";
import { FrontendEntry } from "./frontend_entry.ts";
import { joined, NodeGrants } from "./node_grants.ts";

/** Most entries and rules of a document, to bound what a dial may cost. */
export const ENTRIES_MAX = 1_000;
export const RULES_MAX = 10_000;

/** Combinations of entries that are kept ready. */
const RULE_SETS_MAX = 256;

/** See the module description. */
export class Policy {
  /** Absent: callers are not restricted. */
  readonly #frontends: readonly FrontendEntry[] | undefined;
  readonly #nodes: readonly NodeGrants[];
  /** Absent: every service is told to everybody. */
  readonly #discovery: readonly DiscoveryEntry[] | undefined;
  readonly #ruleSets = new Map<string, RuleSet>();

  /**
   * @param document What was read from a file.
   * @throws {FieldError}
   */
  constructor(document: unknown) {
    const known = ["frontends", "nodes", "discovery"];
    const fields = new Fields(document, "", known);
    const frontends = limited(fields.list("frontends"), "frontends");
    this.#frontends = frontends?.map(([value, place]) =>
      new FrontendEntry(value, place)
    );
    this.#nodes = (limited(fields.list("nodes"), "nodes") ?? [])
      .map(([value, place]) => new NodeGrants(value, place));
    this.#discovery = limited(fields.list("discovery"), "discovery")
      ?.map(([value, place]) => new DiscoveryEntry(value, place));
    const rules = (this.#frontends ?? [])
      .reduce((sum, { allow, deny }) => sum + allow.length + deny.length, 0);
    if (rules > RULES_MAX) {
      throw new FieldError(
        "frontends",
        `saw ${rules} rules, ${RULES_MAX} are allowed`,
      );
    }
  }

  /**
   * Judges a dial.
   *
   * All entries that are about the caller and the node count together: what one
   * of them denies no other one allows.
   *
   * @param nodes The names of the agent that would be asked.
   */
  judge(
    caller: Caller,
    nodes: readonly string[],
    target: DialTarget,
  ): Verdict {
    if (this.#frontends === undefined) return UNRESTRICTED;
    const about = this.#frontends.filter((entry) => entry.isAbout(caller));
    if (about.length === 0) {
      const note = `no frontends entry is about ${nameOf(caller)}`;
      return { ...NOT_ALLOWED, note };
    }
    const here = about.filter((entry) => entry.isAboutNode(nodes));
    if (here.length === 0) {
      const node = nodes.length === 0 ? "no node" : `node ${nodes[0]}`;
      const note = `no entry about ${nameOf(caller)} is about ${node}`;
      return { ...NOT_ALLOWED, note };
    }
    return this.#rulesOf(here).judgeUnresolved(subjectOf(target));
  }

  /** What `node` may say that it serves, besides its own name. */
  grantsOf(node: string): Identifiers {
    const about = this.#nodes.filter((grants) => grants.isAbout(node));
    return joined(about.map(({ identifiers }) => identifiers));
  }

  /**
   * The services that `node` is told of.
   *
   * @param node Empty for who is nobody's node.
   */
  visibleTo(node: string): Visibility {
    return visibilityOf(this.#discovery, node);
  }

  #rulesOf(entries: readonly FrontendEntry[]): RuleSet {
    const key = entries.map((entry) => this.#frontends!.indexOf(entry)).join();
    let rules = this.#ruleSets.get(key);
    if (rules === undefined) {
      if (this.#ruleSets.size >= RULE_SETS_MAX) this.#ruleSets.clear();
      const all = (of: (entry: FrontendEntry) => readonly LabelledRule[]) =>
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

/** The verdict where callers are not restricted. */
export const UNRESTRICTED: Verdict = {
  isAllowed: true,
  rule: "none were given",
};

function limited<Item>(
  items: readonly Item[] | undefined,
  place: string,
): readonly Item[] | undefined {
  if (items === undefined || items.length <= ENTRIES_MAX) return items;
  throw new FieldError(
    place,
    `saw ${items.length} entries, ${ENTRIES_MAX} are allowed`,
  );
}
