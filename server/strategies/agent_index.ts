/**
 * Agents, found in the two ways in which dials ask for them: for a target, by
 * strategies; or by a name, whatever the strategies are: `node1` or an address
 * means the `host` identifier, `uid=…` and `cidr=…` those, `id=…` the agent's
 * own name, which every agent has.
 *
 * @module
 */

import type { DialTarget } from "../../proto/peer/dial_error.ts";
import { prefixKey } from "../../proto/peer/normal_form.ts";
import { Tally } from "../../proto/sync/tally.ts";
import type { StrategyName } from "../options.ts";
import {
  type Candidate,
  type CandidateList,
  namedBy,
  RULES,
  Strategy,
  targetHost,
} from "./strategy.ts";

/** A strategy, and the ids of its agents. */
interface CountedStrategy<C extends Candidate, List extends CandidateList<C>> {
  readonly name: StrategyName;
  readonly strategy: Strategy<C, List>;
  /** Kept as a count: health ports, metrics and each link ask for it. */
  readonly ids: Tally<string>;
}

/** An index of agents by all their names, and by what they serve. */
export class AgentIndex<
  C extends Candidate,
  List extends CandidateList<C> = CandidateList<C>,
> {
  readonly #strategies: readonly CountedStrategy<C, List>[];
  readonly #by: ReadonlyMap<string, Strategy<C, List>>;

  /** @param strategies The first that finds an agent decides. */
  constructor(strategies: readonly StrategyName[], newList: () => List) {
    this.#strategies = strategies.map((name) => ({
      name,
      strategy: new Strategy(RULES[name](), newList),
      ids: new Tally(),
    }));
    const rules = {
      host: RULES.destHost(),
      uid: RULES.uid(),
      // Agents that announced exactly this prefix; a prefix inside it is
      // another key.
      cidr: namedBy(({ identifiers }) => identifiers.cidr, prefixKey),
      // With its spelling: two agents may differ in case alone.
      id: namedBy(({ agentId }) => [agentId], (id) => id),
    };
    this.#by = new Map(
      Object.entries(rules)
        .map(([key, rule]) => [key, new Strategy<C, List>(rule, newList)]),
    );
  }

  /** Distinct agent ids. */
  get agents(): number {
    return this.#by.get("id")!.size;
  }

  /** Distinct agent ids per strategy, in the order of the strategies. */
  agentCounts(): { strategy: StrategyName; agents: number }[] {
    return this.#strategies
      .map(({ name, ids }) => ({ strategy: name, agents: ids.size }));
  }

  add(candidate: C): void {
    for (const { strategy, ids } of this.#strategies) {
      if (strategy.add(candidate)) ids.add(candidate.peer.agentId);
    }
    for (const names of this.#by.values()) names.add(candidate);
  }

  /** One that is there already may have a new link. */
  update(candidate: C): void {
    for (const { strategy } of this.#strategies) strategy.add(candidate);
    for (const names of this.#by.values()) names.add(candidate);
  }

  remove(candidate: C): void {
    for (const { strategy, ids } of this.#strategies) {
      if (strategy.remove(candidate)) ids.add(candidate.peer.agentId, -1);
    }
    for (const names of this.#by.values()) names.remove(candidate);
  }

  /** Those for a target, or of that name; `undefined`: there are none. */
  list({ address }: DialTarget, node: string | undefined): List | undefined {
    return node === undefined ? this.#decide(address)?.found : this.named(node);
  }

  /** The strategy that finds the agents for a target, if one does. */
  strategyFor({ address }: DialTarget): StrategyName | undefined {
    return this.#decide(address)?.name;
  }

  /** Those that are called so; `undefined`: none is. */
  named(name: string): List | undefined {
    // No host has an equals sign in it.
    const [, key = "host", value = name] =
      /^(uid|cidr|host|id)=(.*)$/.exec(name) ?? [];
    const rule = this.#by.get(key)!;
    // No node that joined has upper case in its name, and people write `N1`.
    return rule.list(value) ?? rule.list(value.toLowerCase());
  }

  #decide(address: string): { name: StrategyName; found: List } | undefined {
    const host = targetHost(address);
    for (const { name, strategy } of this.#strategies) {
      const found = strategy.list(host);
      if (found !== undefined) return { name, found };
    }
    return undefined;
  }
}
