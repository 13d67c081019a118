/**
 * How a dial finds the agents that may serve it.
 *
 * A strategy keeps an index of agents and answers one question: which of them
 * qualify for this target? Choosing among those is their list's business. Agents
 * of other servers are found in the same way.
 *
 * @module
 */

import type { Identifiers } from "../../proto/peer/identifiers.ts";
import type { StrategyName } from "../options.ts";
import { nameKey } from "../../proto/peer/normal_form.ts";
import { cidrStrategy } from "./cidr.ts";

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
  /** Adds it, or looks at it anew. */
  add(candidate: C): void;
  /** Forgets it; harmless when it is not there. */
  remove(candidate: C): void;
}

/** Agents that qualify for a host, by one rule. */
export interface Strategy<
  C extends Candidate,
  List extends CandidateList<C> = CandidateList<C>,
> {
  readonly name: StrategyName;
  /** Adds it, or looks at it anew. @returns Whether it qualifies for anything. */
  add(candidate: C): boolean;
  /** Forgets it. @returns As {@linkcode add}. */
  remove(candidate: C): boolean;
  /** Those that qualify for a target host; `undefined`: none does. */
  list(host: string): List | undefined;
  /** The same, as they stand in their list; often none. */
  find(host: string): readonly C[];
}

// The host of a dial's address, as strategies compare it.

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

// Strategies that compare a target's host with what agents announced:
// `destHost` (names and addresses) and `uid`.
//
// Unlike upstream's, both are compared in their normal form (`normal_form.ts`),
// so `NODE1` and `0:0:0:0:0:0:0:1` find their agents.

/**
 * @param keysOf Which identifiers of an agent count.
 * @param keyOf The spelling under which they are indexed.
 */
export function keyedStrategy<
  C extends Candidate,
  List extends CandidateList<C>,
>(
  name: StrategyName,
  newList: () => List,
  keysOf: (identifiers: Identifiers) => readonly string[],
  keyOf: (text: string) => string = nameKey,
): Strategy<C, List> {
  const index = new Map<string, List>();
  const keys = ({ peer }: C) => new Set(keysOf(peer.identifiers).map(keyOf));
  const list = (host: string) => index.get(keyOf(host));
  return {
    name,
    add(candidate) {
      const found = keys(candidate);
      for (const key of found) {
        let list = index.get(key);
        if (list === undefined) index.set(key, list = newList());
        list.add(candidate);
      }
      return found.size > 0;
    },
    remove(candidate) {
      const found = keys(candidate);
      for (const key of found) {
        const list = index.get(key);
        list?.remove(candidate);
        if (list?.all.length === 0) index.delete(key);
      }
      return found.size > 0;
    },
    list,
    find: (host) => list(host)?.all ?? [],
  };
}

// From the name of a strategy to an empty one. Of `default` every agent serves
// every target, of `defaultRoute` those that announced `default-route=true`.

/** Makes an empty strategy. */
export function createStrategy<
  C extends Candidate,
  List extends CandidateList<C> = CandidateList<C>,
>(name: StrategyName, newList: () => List): Strategy<C, List> {
  switch (name) {
    case "default":
      return anyTargetStrategy("default", newList, () => true);
    case "destHost":
      return keyedStrategy("destHost", newList, ({ host, ipv4, ipv6 }) => [
        ...host,
        ...ipv4,
        ...ipv6,
      ]);
    case "defaultRoute":
      return anyTargetStrategy(
        "defaultRoute",
        newList,
        ({ defaultRoute }) => defaultRoute,
      );
    case "cidr":
      return cidrStrategy(newList);
    case "uid":
      return keyedStrategy("uid", newList, ({ uid }) => uid);
  }
}

/** Agents that qualify serve every target. */
function anyTargetStrategy<
  C extends Candidate,
  List extends CandidateList<C>,
>(
  name: StrategyName,
  newList: () => List,
  qualifies: (identifiers: Identifiers) => boolean,
): Strategy<C, List> {
  const all = newList();
  const does = ({ peer }: C) => qualifies(peer.identifiers);
  return {
    name,
    add(candidate) {
      if (!does(candidate)) return false;
      all.add(candidate);
      return true;
    },
    remove(candidate) {
      all.remove(candidate);
      return does(candidate);
    },
    list: () => all.all.length === 0 ? undefined : all,
    find: () => all.all,
  };
}
