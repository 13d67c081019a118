/**
 * Agents among which dials choose, each once, however many links it has and
 * whenever they came.
 *
 * Adding, removing and choosing cost the same with ten agents and with ten
 * thousand. So agents that seem healthy stand in front, and dials draw among
 * them. An agent that is drawn and is not healthy moves behind them. With each
 * choice a few of those behind are checked again, and move forward when they
 * have recovered. When there are few agents, all are checked, and the result is
 * exact.
 *
 * @module
 */

import type { AgentLink } from "../../proto/link/link.ts";
import { type LinkGroup, Rank } from "../links/link_choice.ts";
import type { CandidateList } from "./strategy.ts";

/** How good a link is now. */
export type RankOf = (link: AgentLink) => Rank;

/** Which agents may be chosen; all when it is absent. */
export type IsWanted = (agent: LinkGroup) => boolean;

/** How many that are not healthy are looked at again with each choice. */
const REVIEWED = 2;

/** How many are looked at when none is healthy: the best of them is chosen. */
export const AGENTS_LOOKED_AT_MAX = 64;

/**
 * Up to this many are searched one by one, which is quicker and needs no table.
 */
const SEARCHED_MAX = 8;

/** See the module description. */
export class AgentList implements CandidateList<LinkGroup> {
  /** The first `#healthy` of them are thought to be healthy. */
  #agents: LinkGroup[] = [];
  #healthy = 0;
  /** The index in `#agents` of each agent, once there are many. */
  #places: Map<LinkGroup, number> | undefined;
  /** Which of those that are not healthy is looked at next. */
  #reviewedNext = 0;

  /** In no order. */
  get all(): readonly LinkGroup[] {
    return this.#agents;
  }

  /** Adds `agent`, or updates it: it may have a new link. */
  add(agent: LinkGroup): void {
    let place = this.#placeOf(agent);
    if (place === -1) {
      place = this.#agents.length;
      // Nearly all lists have one: an array that grew has room for seventeen.
      if (place === 0) this.#agents = [agent];
      this.#put(agent, place);
    }
    this.#promote(place);
    if (this.#places === undefined && this.#agents.length > SEARCHED_MAX) {
      this.#places = new Map(this.#agents.map((one, at) => [one, at]));
    }
  }

  /** Forgets `agent`; harmless when it is not there. */
  remove(agent: LinkGroup): void {
    let place = this.#placeOf(agent);
    if (place === -1) return;
    if (place < this.#healthy) place = this.#demote(place);
    const last = this.#agents.pop()!;
    if (last !== agent) this.#put(last, place);
    this.#places?.delete(agent);
  }

  /**
   * The best agent: healthy before silent before draining, then the less loaded of
   * two drawn at random, which spreads load almost as well as looking at all of
   * them (Mitzenmacher's "power of two choices").
   *
   * @param random Uniform in [0, 1).
   */
  choose(
    rankOf: RankOf,
    random: () => number,
    isWanted?: IsWanted,
  ): LinkGroup | undefined {
    if (this.#agents.length === 0) return undefined;
    this.#review(rankOf, REVIEWED);
    const drawn = this.#drawHealthy(rankOf, random, isWanted);
    if (drawn !== undefined) return drawn;
    this.#review(rankOf, AGENTS_LOOKED_AT_MAX);
    return this.#drawHealthy(rankOf, random, isWanted) ??
      this.#bestOfSome(rankOf, random, isWanted);
  }

  /** The less loaded of two that are healthy, and wanted. */
  #drawHealthy(
    rankOf: RankOf,
    random: () => number,
    isWanted: IsWanted | undefined,
  ): LinkGroup | undefined {
    let first: LinkGroup | undefined;
    // Those that are not wanted are few: they have been tried.
    let draws = isWanted === undefined
      ? Infinity
      : Math.min(AGENTS_LOOKED_AT_MAX, 2 * this.#healthy);
    let start = this.#healthy > 1 ? Math.floor(random() * this.#healthy) : 0;
    while (this.#healthy > 0 && draws-- > 0) {
      const place = start % this.#healthy;
      const agent = this.#agents[place]!;
      // Once around: there is no second one.
      if (agent === first) return first;
      if (agent.rank(rankOf) !== Rank.healthy) {
        this.#demote(place);
        continue;
      }
      start = place + 1;
      if (isWanted !== undefined && !isWanted(agent)) continue;
      if (first !== undefined) return agent.load < first.load ? agent : first;
      first = agent;
      // Any of the others, with equal chance.
      const others = this.#healthy - 1;
      if (others > 1) start += Math.floor(random() * others);
    }
    return first;
  }

  /** None is healthy or wanted: the best of those that were looked at. */
  #bestOfSome(
    rankOf: RankOf,
    random: () => number,
    isWanted: IsWanted | undefined,
  ): LinkGroup | undefined {
    const { length } = this.#agents;
    const first = Math.floor(random() * length);
    const looks = Math.min(length, AGENTS_LOOKED_AT_MAX);
    let best: LinkGroup | undefined;
    for (let look = 0; look < looks; look++) {
      const agent = this.#agents[(first + look) % length]!;
      if (isWanted !== undefined && !isWanted(agent)) continue;
      best = best === undefined ? agent : better(best, agent, rankOf);
    }
    return best;
  }

  /** Some of those that are not healthy may be so again. */
  #review(rankOf: RankOf, most: number): void {
    const behind = this.#agents.length - this.#healthy;
    for (let look = Math.min(behind, most); look > 0; look--) {
      const { length } = this.#agents;
      const place = this.#healthy +
        this.#reviewedNext % (length - this.#healthy);
      this.#reviewedNext = (this.#reviewedNext + 1) % length;
      const isHealthy = this.#agents[place]!.rank(rankOf) === Rank.healthy;
      if (isHealthy) this.#promote(place);
    }
  }

  #promote(place: number): void {
    if (place < this.#healthy) return;
    this.#swap(place, this.#healthy++);
  }

  /** @returns Where it is then. */
  #demote(place: number): number {
    this.#swap(place, --this.#healthy);
    return this.#healthy;
  }

  #swap(one: number, other: number): void {
    if (one === other) return;
    const agent = this.#agents[one]!;
    this.#put(this.#agents[other]!, one);
    this.#put(agent, other);
  }

  #put(agent: LinkGroup, place: number): void {
    this.#agents[place] = agent;
    this.#places?.set(agent, place);
  }

  #placeOf(agent: LinkGroup): number {
    if (this.#places !== undefined) return this.#places.get(agent) ?? -1;
    return this.#agents.indexOf(agent);
  }
}

function better(a: LinkGroup, b: LinkGroup, rankOf: RankOf): LinkGroup {
  const difference = a.rank(rankOf) - b.rank(rankOf);
  if (difference !== 0) return difference < 0 ? a : b;
  return b.load < a.load ? b : a;
}
