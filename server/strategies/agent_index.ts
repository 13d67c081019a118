/**
 * Agents by what a caller calls them, whatever the strategies are: `node1` or an
 * address means the `host` identifier, `uid=…` and `cidr=…` those, `id=…` the
 * agent's own name, which every agent has.
 *
 * @module
 */

import { prefixKey } from "../../proto/peer/normal_form.ts";
import {
  type Candidate,
  type CandidateList,
  createStrategy,
  keyedStrategy,
  type Strategy,
} from "./strategy.ts";

/** An index of agents by all their names. */
export class AgentIndex<
  C extends Candidate,
  List extends CandidateList<C> = CandidateList<C>,
> {
  readonly #byHost: Strategy<C, List>;
  readonly #byUid: Strategy<C, List>;
  /** Agents that announced this very prefix; one inside it is another one. */
  readonly #byCidr: Strategy<C, List>;
  /** As it is spelled: two agents may differ in case alone. */
  readonly #byId = new Map<string, List>();

  constructor(private readonly newList: () => List) {
    this.#byHost = createStrategy("destHost", newList);
    this.#byUid = createStrategy("uid", newList);
    this.#byCidr = keyedStrategy(
      "cidr",
      newList,
      ({ cidr }) => cidr,
      prefixKey,
    );
  }

  /** Distinct agent ids. */
  get agents(): number {
    return this.#byId.size;
  }

  /** Adds it, or looks at it anew. */
  add(candidate: C): void {
    for (const strategy of this.#all) strategy.add(candidate);
    const { agentId } = candidate.peer;
    let list = this.#byId.get(agentId);
    if (list === undefined) this.#byId.set(agentId, list = this.newList());
    list.add(candidate);
  }

  remove(candidate: C): void {
    for (const strategy of this.#all) strategy.remove(candidate);
    const { agentId } = candidate.peer;
    const list = this.#byId.get(agentId);
    list?.remove(candidate);
    if (list?.all.length === 0) this.#byId.delete(agentId);
  }

  find(name: string): readonly C[] {
    return this.list(name)?.all ?? [];
  }

  /** The same as a list; `undefined`: there is none. */
  list(name: string): List | undefined {
    // No host has an equals sign in it.
    const [, key, value = ""] = /^(uid|cidr|host|id)=(.*)$/.exec(name) ?? [];
    switch (key) {
      case "id":
        return this.#byId.get(value);
      case "uid":
        return this.#byUid.list(value);
      case "cidr":
        return this.#byCidr.list(value);
      default:
        return this.#byHost.list(key === undefined ? name : value);
    }
  }

  get #all(): readonly Strategy<C, List>[] {
    return [this.#byHost, this.#byUid, this.#byCidr];
  }
}

// How many agents there are by their ids, without counting them anew: health
// ports and metrics ask all the time, and each link that comes or goes asks.

/** Agents, of which several may have one id. */
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
