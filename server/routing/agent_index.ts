/**
 * Agents by what a caller calls them, whatever the strategies are: `node1` or an
 * address means the `host` identifier, `uid=…` and `cidr=…` those, `id=…` the
 * agent's own name, which every agent has.
 *
 * @module
 */

import type { AgentLink } from "../../proto/link/link.ts";
import { prefixKey } from "../../proto/peer/normal_form.ts";
import { createStrategy } from "../strategies/create_strategy.ts";
import { keyedStrategy } from "../strategies/keyed.ts";
import { AgentList } from "../strategies/agent_list.ts";
import type { Strategy } from "../strategies/strategy.ts";

/** An index of agents by all their names. */
export class AgentIndex {
  readonly #byHost = createStrategy("destHost");
  readonly #byUid = createStrategy("uid");
  /** Agents that announced this very prefix; one inside it is another one. */
  readonly #byCidr = keyedStrategy("cidr", ({ cidr }) => cidr, prefixKey);

  /** As it is spelled: two agents may differ in case alone. */
  readonly #byId = new Map<string, AgentList>();

  add(link: AgentLink): void {
    for (const strategy of this.#all) strategy.add(link);
    const { agentId } = link.peer;
    let links = this.#byId.get(agentId);
    if (links === undefined) this.#byId.set(agentId, links = new AgentList());
    links.add(link);
  }

  remove(link: AgentLink): void {
    for (const strategy of this.#all) strategy.remove(link);
    const { agentId } = link.peer;
    const links = this.#byId.get(agentId);
    links?.remove(link);
    if (links?.all.length === 0) this.#byId.delete(agentId);
  }

  find(name: string): readonly AgentLink[] {
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

  get #all(): readonly Strategy[] {
    return [this.#byHost, this.#byUid, this.#byCidr];
  }
}
