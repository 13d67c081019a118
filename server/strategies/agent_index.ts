/**
 * Agents by what a caller calls them, whatever the strategies are: `node1` or an
 * address means the `host` identifier, `uid=…` and `cidr=…` those, `id=…` the
 * agent's own name, which every agent has.
 *
 * @module
 */

import { prefixKey } from "../../proto/peer/normal_form.ts";
import { createStrategy } from "./create_strategy.ts";
import { keyedStrategy } from "./keyed.ts";
import type { Candidate, CandidateList, Strategy } from "./strategy.ts";

/** An index of agents by all their names. */
export class AgentIndex<C extends Candidate> {
  readonly #newList: () => CandidateList<C>;
  readonly #byHost: Strategy<C>;
  readonly #byUid: Strategy<C>;
  /** Agents that announced this very prefix; one inside it is another one. */
  readonly #byCidr: Strategy<C>;
  /** As it is spelled: two agents may differ in case alone. */
  readonly #byId = new Map<string, CandidateList<C>>();

  constructor(newList: () => CandidateList<C>) {
    this.#newList = newList;
    this.#byHost = createStrategy("destHost", newList);
    this.#byUid = createStrategy("uid", newList);
    this.#byCidr = keyedStrategy(
      "cidr",
      newList,
      ({ cidr }) => cidr,
      prefixKey,
    );
  }

  add(link: C): void {
    for (const strategy of this.#all) strategy.add(link);
    const { agentId } = link.peer;
    let links = this.#byId.get(agentId);
    if (links === undefined) this.#byId.set(agentId, links = this.#newList());
    links.add(link);
  }

  remove(link: C): void {
    for (const strategy of this.#all) strategy.remove(link);
    const { agentId } = link.peer;
    const links = this.#byId.get(agentId);
    links?.remove(link);
    if (links?.all.length === 0) this.#byId.delete(agentId);
  }

  find(name: string): readonly C[] {
    // No host has an equals sign in it.
    const [, key, value = ""] = /^(uid|cidr|host|id)=(.*)$/.exec(name) ?? [];
    switch (key) {
      case "id":
        return this.#byId.get(value)?.all ?? [];
      case "uid":
        return this.#byUid.find(value);
      case "cidr":
        return this.#byCidr.find(value);
      default:
        return this.#byHost.find(key === undefined ? name : value);
    }
  }

  get #all(): readonly Strategy<C>[] {
    return [this.#byHost, this.#byUid, this.#byCidr];
  }
}
