/**
 * All connected agents, and the choice of one for a dial. Which of its links
 * then carries the conduit is its `LinkGroup`'s business.
 *
 * Links are kept by object, never by agent id: two links of one agent are two
 * entries, and nothing of one can leak into the other.
 *
 * @module
 */

import type { DialTarget } from "../../proto/peer/dial_error.ts";
import type { AgentLink } from "../../proto/link/link.ts";
import { nameKey } from "../../proto/peer/normal_form.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import { LinkGroup, Rank } from "../links/link_choice.ts";
import { AgentIndex } from "../strategies/agent_index.ts";
import { AgentList } from "../strategies/agent_list.ts";
import { createStrategy } from "../strategies/create_strategy.ts";
import type { StrategyName } from "../options.ts";
import type { Strategy } from "../strategies/strategy.ts";
import { targetHost } from "./target_host.ts";
import { hostOf } from "../../proto/peer/host_port.ts";

/**
 * An agent that leaves a PING unanswered for so long gets no dials that others can
 * serve. Few paths take longer; those that do lose nothing but a choice.
 */
export const STILL_MS = 500;

/** What `Registry` needs from outside. */
export interface RegistryOptions {
  /** Asked in this order; the first that finds an agent decides. */
  readonly strategies: readonly StrategyName[];
  readonly clock: Clock;
  /** Uniform in [0, 1); spreads dials over agents. */
  readonly random: () => number;
}

/** No agent serves the target, and why. */
export interface NoAgent {
  readonly kind: "noAgent";
  readonly message: string;
  /** What no agent serves, such as `host=node7`. */
  readonly wanted: string;
  /** It was here, so its name is no slip. */
  readonly wasSeen: boolean;
}

/** A link was chosen. */
export interface Picked {
  readonly kind: "picked";
  readonly link: AgentLink;
}

/** All links, and the strategies that choose among their agents. */
export class Registry {
  readonly #options: RegistryOptions;
  readonly #strategies: readonly Strategy[];
  readonly #index = new AgentIndex<AgentLink>(newList);
  readonly #links = new Set<AgentLink>();
  readonly #groups = new Map<string, LinkGroup>();
  readonly #groupOf = new Map<AgentLink, LinkGroup>();
  readonly #lastSeen: LastSeen;
  /** When the newest link of each agent first received something. */
  readonly #newest = new Map<string, { atMs: number; count: number }>();

  constructor(options: RegistryOptions) {
    this.#options = options;
    this.#strategies = options.strategies.map((name) =>
      createStrategy(name, newList)
    );
    this.#lastSeen = new LastSeen(options.clock);
  }

  /** All links, in order of arrival. */
  get links(): ReadonlySet<AgentLink> {
    return this.#links;
  }

  /** True when a dial has a chance: the first strategy has an agent. */
  get isReady(): boolean {
    return this.agentCounts()[0]?.agents !== 0;
  }

  /** Distinct agent ids per strategy, in the order of the strategies. */
  agentCounts(): { strategy: StrategyName; agents: number }[] {
    return this.#strategies.map((strategy) => {
      const ids = new Set<string>();
      for (const link of strategy.links()) ids.add(link.peer.agentId);
      return { strategy: strategy.name, agents: ids.size };
    });
  }

  /** Whether an agent has announced this very host or address. */
  serves(host: string): boolean {
    return this.#index.find(`host=${host}`).length > 0;
  }

  add(link: AgentLink): void {
    const { agentId } = link.peer;
    this.#links.add(link);
    const count = (this.#newest.get(agentId)?.count ?? 0) + 1;
    this.#newest.set(agentId, { atMs: link.lastHeardMs, count });
    this.#join(link);
    this.#index.add(link);
    for (const strategy of this.#strategies) strategy.add(link);
  }

  #join(link: AgentLink): void {
    const key = LinkGroup.keyOf(link.peer);
    let group = this.#groups.get(key);
    if (group === undefined) this.#groups.set(key, group = new LinkGroup());
    group.add(link);
    this.#groupOf.set(link, group);
  }

  #leave(link: AgentLink): void {
    const group = this.#groupOf.get(link)!;
    this.#groupOf.delete(link);
    group.remove(link);
    if (group.isEmpty) this.#groups.delete(LinkGroup.keyOf(link.peer));
  }

  /** Forgets `link`; harmless when it is not there. */
  remove(link: AgentLink): void {
    if (!this.#links.delete(link)) return;
    const { agentId, remoteAddress } = link.peer;
    const newest = this.#newest.get(agentId)!;
    if (--newest.count === 0) this.#newest.delete(agentId);
    this.#leave(link);
    this.#index.remove(link);
    for (const strategy of this.#strategies) strategy.remove(link);
    for (const key of namesOf(link)) this.#lastSeen.note(key, remoteAddress);
    this.#lastSeen.note(ANY_AGENT, remoteAddress);
  }

  /**
   * Chooses a link for `target`.
   *
   * @param node When given, only agents with this `host` identifier, or serving
   *   this very address, qualify; `uid=`, `cidr=` and `id=` in front mean those.
   */
  pick(target: DialTarget, node?: string): Picked | NoAgent {
    const link = this.#choose(this.#candidates(target, node));
    if (link !== undefined) return { kind: "picked", link };
    if (node === undefined) {
      return this.#refuse(`host=${targetHost(target.address)}`);
    }
    return this.#refuse(node.includes("=") ? node : `host=${node}`);
  }

  /**
   * The same, of those that are wanted alone: one that could have been picked
   * instead, as the first strategy that finds an agent decides here, too.
   */
  pickSuch(
    target: DialTarget,
    node: string | undefined,
    isWanted: (link: AgentLink) => boolean,
  ): AgentLink | undefined {
    const candidates = this.#candidates(target, node);
    const link = this.#choose(candidates.filter(isWanted));
    return link !== undefined && isWanted(link) ? link : undefined;
  }

  /** Whether a link of ours is neither silent nor draining. */
  isHealthy(link: AgentLink): boolean {
    return this.#rankOf(link) === Rank.healthy;
  }

  #candidates(
    target: DialTarget,
    node: string | undefined,
  ): readonly AgentLink[] {
    if (node !== undefined) return this.#index.find(node);
    const host = targetHost(target.address);
    for (const strategy of this.#strategies) {
      const found = strategy.find(host);
      if (found.length > 0) return found;
    }
    return [];
  }

  /**
   * The best agent of `candidates`: healthy before silent before draining, then
   * the less loaded of two drawn at random, which spreads load almost as well as
   * looking at all of them (Mitzenmacher's "power of two choices").
   *
   * @param candidates One link of each agent.
   */
  #choose(candidates: readonly AgentLink[]): AgentLink | undefined {
    if (candidates.length === 0) return undefined;
    const best = this.#bestOf(candidates);
    return best.pick(this.#rankOf, this.#options.clock.now());
  }

  #bestOf(candidates: readonly AgentLink[]): LinkGroup {
    const { random } = this.#options;
    const { length } = candidates;
    const groupAt = (index: number) =>
      this.#groupOf.get(candidates[index % length]!)!;
    if (length === 1) return groupAt(0);
    const one = Math.floor(random() * length);
    const other = one + 1 + Math.floor(random() * (length - 1));
    const best = this.#better(groupAt(one), groupAt(other));
    if (best.rank(this.#rankOf) === Rank.healthy) return best;
    return candidates.reduce(
      (group, link) => this.#better(group, this.#groupOf.get(link)!),
      best,
    );
  }

  #better(a: LinkGroup, b: LinkGroup): LinkGroup {
    if (a === b) return a;
    const difference = a.rank(this.#rankOf) - b.rank(this.#rankOf);
    if (difference !== 0) return difference < 0 ? a : b;
    return b.load < a.load ? b : a;
  }

  readonly #rankOf = (link: AgentLink): Rank => {
    if (link.isDraining) return Rank.draining;
    // An agent that lost its line without a FIN comes back on a new link while
    // the old one still looks alive. A link that received nothing since is silent.
    const newest = this.#newest.get(link.peer.agentId);
    const isOlder = newest !== undefined && link.lastHeardMs < newest.atMs;
    return isOlder || this.#isStill(link) ? Rank.silent : Rank.healthy;
  };

  /** It was asked for a sign of life and gives none: its process may be frozen. */
  #isStill({ askedMs }: AgentLink): boolean {
    return askedMs !== undefined &&
      this.#options.clock.now() - askedMs >= STILL_MS;
  }

  #refuse(wanted: string): NoAgent {
    const key = nameKey(wanted.slice(wanted.indexOf("=") + 1));
    const which = this.#links.size === 0
      ? `no agent is connected (${this.#lastSeen.describe(ANY_AGENT)})`
      : `no agent serves ${wanted}; ${this.#lastSeen.describe(key)}`;
    const message = `No agent available: ${which}`;
    const wasSeen = this.#lastSeen.has(key);
    return { kind: "noAgent", message, wanted, wasSeen };
  }
}

const newList = () => new AgentList();

/** Not a possible host, so it cannot collide with one. */
const ANY_AGENT = "*";

function namesOf({ peer }: AgentLink): Set<string> {
  const { host, ipv4, ipv6, uid } = peer.identifiers;
  const names = [...host, ...ipv4, ...ipv6, ...uid, peer.agentId];
  return new Set(names.map(nameKey));
}

/**
 * Most identifiers remembered. Beyond it the longest-gone is forgotten, and its
 * refusals no longer contain when it was seen; an agent that reconnects under ever
 * new names must not fill memory.
 */
export const LAST_SEEN_MAX = 10_000;

/** When and from where something was last seen. */
interface Sighting {
  readonly atMs: number;
  readonly remoteAddress: string;
}

/** When and from where agents that are gone were last seen, for refusals. */
class LastSeen {
  readonly #clock: Clock;
  // In order of departure, because `note` moves a key to the end.
  readonly #seen = new Map<string, Sighting>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Remembers that `key` was seen until now. */
  note(key: string, remoteAddress: string): void {
    this.#seen.delete(key);
    this.#seen.set(key, { atMs: this.#clock.now(), remoteAddress });
    if (this.#seen.size <= LAST_SEEN_MAX) return;
    const oldest = this.#seen.keys().next();
    if (!oldest.done) this.#seen.delete(oldest.value);
  }

  /** Whether it was here, and is remembered. */
  has(key: string): boolean {
    return this.#seen.has(key);
  }

  /** Such as `last seen 42 s ago from 10.0.0.7`, or `never seen`. */
  describe(key: string): string {
    const seen = this.#seen.get(key);
    if (seen === undefined) return "never seen";
    const ago = formatAge(this.#clock.now() - seen.atMs);
    return `last seen ${ago} ago from ${hostOf(seen.remoteAddress)}`;
  }
}

/** A duration in its largest whole unit, such as `42 s` or `3 h`. */
function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}
