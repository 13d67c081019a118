/**
 * Agents by the names that callers use, independent of strategies: `node1` or
 * an address means the `host` identifier, `uid=…` and `cidr=…` those, `id=…`
 * the agent's own name, which every agent has.
 *
 * @module
 */

import { prefixKey } from "../../proto/peer/normal_form.ts";
import {
  type Candidate,
  type CandidateList,
  namedBy,
  RULES,
  Strategy,
} from "./strategy.ts";

/** An index of agents by all their names. */
export class AgentIndex<
  C extends Candidate,
  List extends CandidateList<C> = CandidateList<C>,
> {
  readonly #by: ReadonlyMap<string, Strategy<C, List>>;

  constructor(newList: () => List) {
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

  /** Adds it, or updates it. */
  add(candidate: C): void {
    for (const strategy of this.#by.values()) strategy.add(candidate);
  }

  remove(candidate: C): void {
    for (const strategy of this.#by.values()) strategy.remove(candidate);
  }

  /** Those that are called so; `undefined`: none is. */
  list(name: string): List | undefined {
    // No host has an equals sign in it.
    const [, key = "host", value = name] =
      /^(uid|cidr|host|id)=(.*)$/.exec(name) ?? [];
    return this.#by.get(key)!.list(value);
  }
}

/**
 * The number of agents by their ids, kept as a count: health ports, metrics and
 * each link that comes or goes ask for it.
 */
export class AgentTally {
  readonly #perId = new Map<string, number>();

  /** Distinct ids. */
  get size(): number {
    return this.#perId.size;
  }

  add({ peer: { agentId } }: Candidate): void {
    this.#perId.set(agentId, (this.#perId.get(agentId) ?? 0) + 1);
  }

  /** Takes back one that was added. */
  remove({ peer: { agentId } }: Candidate): void {
    const count = this.#perId.get(agentId);
    if (count === undefined || count === 1) this.#perId.delete(agentId);
    else this.#perId.set(agentId, count - 1);
  }
}
