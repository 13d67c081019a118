/**
 * Which of the other servers have an agent for a dial, by the same rules by
 * which a server finds its own. The search costs the same with ten agents and
 * with ten thousand: each list has every server once.
 *
 * @module
 */

import type { DialTarget } from "../../proto/peer/dial_error.ts";
import {
  type CandidateList,
  RULES,
  Strategy,
  targetHost,
} from "../strategies/strategy.ts";
import type { StrategyName } from "../options.ts";
import { AgentIndex } from "../strategies/agent_index.ts";
import type { ListedAgent } from "./agent_shards.ts";
import type { Peer } from "./peers.ts";

/** An agent, and who has it. */
export interface PeerAgent {
  readonly peer: ListedAgent;
  /** The same object for all agents of a server. */
  readonly server: Peer;
}

export class PeerIndex {
  readonly #strategies: readonly Strategy<PeerAgent>[];
  readonly #index = new AgentIndex<PeerAgent>(() => new ServerList());

  constructor(strategies: readonly StrategyName[]) {
    this.#strategies = strategies.map((name) =>
      new Strategy<PeerAgent>(RULES[name](), () => new ServerList())
    );
  }

  add(agent: PeerAgent): void {
    this.#index.add(agent);
    for (const strategy of this.#strategies) strategy.add(agent);
  }

  remove(agent: PeerAgent): void {
    this.#index.remove(agent);
    for (const strategy of this.#strategies) strategy.remove(agent);
  }

  /** Each server once. See `Peers.find`. */
  find(target: DialTarget, node: string | undefined): readonly Peer[] {
    const found = this.#candidates(target, node)?.all ?? [];
    return found.map(({ server }) => server);
  }

  #candidates({ address }: DialTarget, node: string | undefined) {
    if (node !== undefined) return this.#index.list(node);
    const host = targetHost(address);
    for (const strategy of this.#strategies) {
      const found = strategy.list(host);
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

/** Agents, and one of each server. */
class ServerList implements CandidateList<PeerAgent> {
  readonly #servers = new Map<Peer, Set<PeerAgent>>();
  #all: readonly PeerAgent[] = [];

  get all(): readonly PeerAgent[] {
    return this.#all;
  }

  add(agent: PeerAgent): void {
    const agents = this.#servers.get(agent.server);
    if (agents !== undefined) return void agents.add(agent);
    this.#servers.set(agent.server, new Set([agent]));
    this.#all = [...this.#all, agent];
  }

  remove(agent: PeerAgent): void {
    const agents = this.#servers.get(agent.server);
    if (agents === undefined || !agents.delete(agent)) return;
    const [next] = agents;
    if (next === undefined) this.#servers.delete(agent.server);
    const isShown = this.#all.includes(agent);
    if (!isShown) return;
    const others = this.#all.filter((shown) => shown !== agent);
    this.#all = next === undefined ? others : [...others, next];
  }
}
