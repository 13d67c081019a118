/**
 * How a dial finds the agents that may serve it.
 *
 * A strategy keeps an index of agents and answers one question: which of them
 * qualify for this target? Each one is a rule that says under which keys an agent
 * stands, and under which ones a host is looked for. Choosing among those that are
 * found is their list's business. Agents of other servers are found in the same way.
 *
 * Unlike upstream's, names and addresses are compared in their normal form
 * (`normal_form.ts`), so `NODE1` and `0:0:0:0:0:0:0:1` find their agents.
 *
 * @module
 */

import type { Identifiers } from "../../proto/peer/identifiers.ts";
import {
  type IpAddress,
  maskedAddress,
  parseIpPrefix,
} from "../../proto/peer/ip_address.ts";
import { addressOf, nameKey } from "../../proto/peer/normal_form.ts";
import { Tally } from "../../proto/sync/tally.ts";
import type { StrategyName } from "../options.ts";

/** An agent, as strategies see it. */
export interface Candidate {
  readonly peer: {
    readonly agentId: string;
    readonly identifiers: Identifiers;
  };
}

/** Candidates that qualify for the same targets, and those to choose among. */
export interface CandidateList<C extends Candidate> {
  readonly all: readonly C[];
  /** Adds it, or updates it. */
  add(candidate: C): void;
  /** Forgets it; harmless when it is not there. */
  remove(candidate: C): void;
}

/** What makes an agent qualify for a host. */
export interface Rule<Peer = Candidate["peer"]> {
  /** The keys of an agent; none: it qualifies for no target. */
  keysOf(peer: Peer): readonly string[];
  /** The keys for a host; the first key with agents decides. */
  search(host: string): Iterable<string>;
  /** The first agent gets this key, or the last one loses it. */
  used?(key: string, change: 1 | -1): void;
}

/** Agents that qualify for a host, by one rule. */
export class Strategy<
  C extends Candidate,
  List extends CandidateList<C> = CandidateList<C>,
> {
  readonly #lists = new Map<string, List>();

  constructor(
    private readonly rule: Rule<C["peer"]>,
    private readonly newList: () => List,
  ) {}

  /** Keys that have agents. */
  get size(): number {
    return this.#lists.size;
  }

  /** Adds it, or updates it. @returns Whether it qualifies for any target. */
  add(candidate: C): boolean {
    const keys = new Set(this.rule.keysOf(candidate.peer));
    for (const key of keys) {
      let list = this.#lists.get(key);
      if (list === undefined) {
        this.#lists.set(key, list = this.newList());
        this.rule.used?.(key, 1);
      }
      list.add(candidate);
    }
    return keys.size > 0;
  }

  /** Forgets it. @returns As {@linkcode add}. */
  remove(candidate: C): boolean {
    const keys = new Set(this.rule.keysOf(candidate.peer));
    for (const key of keys) {
      const list = this.#lists.get(key);
      list?.remove(candidate);
      if (list?.all.length !== 0) continue;
      this.#lists.delete(key);
      this.rule.used?.(key, -1);
    }
    return keys.size > 0;
  }

  /** Those that qualify for a target host; `undefined`: none does. */
  list(host: string): List | undefined {
    for (const key of this.rule.search(host)) {
      const list = this.#lists.get(key);
      if (list !== undefined) return list;
    }
    return undefined;
  }
}

/**
 * The rules by their names. Of `default` every agent serves every target, of
 * `defaultRoute` those that announced `default-route=true`.
 */
export const RULES: Readonly<Record<StrategyName, () => Rule>> = {
  default: () => anyTarget(() => true),
  destHost: () =>
    namedBy(({ identifiers: { host, ipv4, ipv6 } }) => [
      ...host,
      ...ipv4,
      ...ipv6,
    ]),
  defaultRoute: () => anyTarget(({ identifiers }) => identifiers.defaultRoute),
  cidr: cidrRule,
  uid: () => namedBy(({ identifiers }) => identifiers.uid),
};

/** @param spelled The spelling under which names are indexed. */
export function namedBy(
  names: Rule["keysOf"],
  spelled: (text: string) => string = nameKey,
): Rule {
  return {
    keysOf: (peer) => names(peer).map(spelled),
    search: (host) => [spelled(host)],
  };
}

/** Agents that qualify serve every target. */
function anyTarget(qualifies: (peer: Candidate["peer"]) => boolean): Rule {
  const keys = [""];
  return {
    keysOf: (peer) => qualifies(peer) ? keys : [],
    search: () => keys,
  };
}

/**
 * The agents that announced the longest prefix around the target's address.
 * (Upstream parses `cidr=` and uses it for nothing.)
 *
 * Each node of a cluster may announce the prefix of its pods, so routes are as
 * many as agents. A search costs one look for each length of which there is a
 * prefix, of which clusters have a few; there are 33 and 129 at most.
 */
function cidrRule(): Rule {
  /** Prefixes of each length, by bytes of an address and length. */
  const counts = new Tally<string>();
  /** The longest first, so that the first match is the answer. */
  let order: readonly (readonly [bytes: number, length: number])[] = [];
  const keyOf = (address: IpAddress, length: number) =>
    `${address.length}/${length} ${address.join()}`;
  return {
    // Text that is no prefix was refused before.
    keysOf: ({ identifiers }) =>
      identifiers.cidr.flatMap((text) => {
        const prefix = parseIpPrefix(text);
        return prefix === undefined ? [] : keyOf(prefix.address, prefix.length);
      }),
    *search(host) {
      const address = addressOf(host);
      if (address === undefined) return;
      for (const [bytes, length] of order) {
        if (bytes !== address.length) continue;
        yield keyOf(maskedAddress(address, length), length);
      }
    },
    used(key, change) {
      const [kind = ""] = key.split(" ", 1);
      counts.add(kind, change);
      order = [...counts.keys()].map((kind) => {
        const [bytes, length] = kind.split("/").map(Number);
        return [bytes!, length!] as const;
      }).sort(([, one], [, other]) => other - one);
    },
  };
}

/**
 * Takes the port off `address` the way Konnectivity does (its
 * `RemovePortFromHost`): text with at most one colon loses what follows it,
 * IPv6 loses a port only when it is bracketed, brackets always go.
 */
export function targetHost(address: string): string {
  const bracketed = /^\[([^\]]*)\](?::.*)?$/.exec(address);
  if (bracketed !== null) return bracketed[1]!;
  const colon = address.indexOf(":");
  if (colon === -1 || colon !== address.lastIndexOf(":")) return address;
  return address.slice(0, colon);
}
