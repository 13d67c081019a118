/**
 * All connected agents, and the choice of one for a dial. Which of its links
 * then carries the conduit is its `LinkGroup`'s business.
 *
 * Links are kept by object, never by agent id: two links of one agent are two
 * entries, and their data cannot mix.
 *
 * No dial, no link that comes or goes and no question about counts costs more
 * with ten thousand agents than with ten (`registry_scale_test.ts`).
 *
 * @module
 */

import type { DialTarget } from "../../proto/peer/dial_error.ts";
import type { AgentLink, Carrier } from "../../proto/link/link.ts";
import { nameKey } from "../../proto/peer/normal_form.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import { setNewest } from "../../proto/sync/newest.ts";
import { Tally } from "../../proto/sync/tally.ts";
import { LinkGroup, Rank } from "../links/link_choice.ts";
import { AgentIndex } from "../strategies/agent_index.ts";
import { AgentList } from "../strategies/agent_list.ts";
import { Strategy, targetHost } from "../strategies/strategy.ts";
import type { StrategyName } from "../options.ts";
import { hostOf } from "../../proto/peer/host_port.ts";
import { NODE_SUBJECT_PREFIX } from "../../proto/identity/node_name.ts";

/**
 * An agent that leaves a PING unanswered for this long gets only dials that no
 * other agent can serve. Few paths are slower; those lose only a choice.
 */
export const STILL_MS = 500;

/** It was asked for a sign of life and gives none: its process may be frozen. */
export function isStill(
  { askedMs = Infinity }: Pick<AgentLink, "askedMs">,
  nowMs: number,
): boolean {
  return nowMs - askedMs >= STILL_MS;
}

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
  /** It was here, so its name is no typing error. */
  readonly wasSeen: boolean;
}

/** A link was chosen. */
export interface Picked {
  readonly kind: "picked";
  readonly link: AgentLink;
}

/** All links, and the strategies that choose among their agents. */
export class Registry {
  readonly #index: AgentIndex<LinkGroup, AgentList>;
  readonly #names = new Strategy<LinkGroup, AgentList>(
    { keysOf: nodeNamesOf, search: (name) => [name] },
    () => new AgentList(),
  );
  readonly #links = new Set<AgentLink>();
  readonly #carriers = new Tally<Carrier>();
  /** Those that were dialed on, until they are found to carry nothing. */
  readonly #dialed = new Set<AgentLink>();
  readonly #unwanted = new WeakSet<AgentLink>();
  readonly #groups = new Map<string, LinkGroup>();
  readonly #groupOf = new Map<AgentLink, LinkGroup>();
  readonly #lastSeen: LastSeen;
  /** When the newest link of each agent first received something. */
  readonly #newest = new Map<string, { atMs: number; count: number }>();

  constructor(private readonly options: RegistryOptions) {
    this.#index = new AgentIndex(options.strategies, () => new AgentList());
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

  /** Distinct agent ids. */
  get agents(): number {
    return this.#index.agents;
  }

  /** Distinct agent ids per strategy, in the order of the strategies. */
  agentCounts(): { strategy: StrategyName; agents: number }[] {
    return this.#index.agentCounts();
  }

  /** How many links there are of a carrier. */
  linksOver(carrier: Carrier): number {
    return this.#carriers.of(carrier);
  }

  /** Links that may carry something now; all others carry nothing. */
  loadedLinks(): Iterable<AgentLink> {
    for (const link of this.#dialed) {
      if (link.load === 0) this.#dialed.delete(link);
    }
    return this.#dialed;
  }

  /**
   * Links that may have been admitted by this node's name or grants: all
   * unauthenticated ones are among them.
   */
  about(node: string): readonly AgentLink[] {
    const agents = [nameKey(node), ANONYMOUS]
      .flatMap((name) => this.#names.list(name)?.all ?? []);
    return [...new Set(agents)].flatMap(({ links }) => links);
  }

  /** Whether an agent has announced this very host or address. */
  serves(host: string): boolean {
    return this.#index.named(`host=${host}`) !== undefined;
  }

  add(link: AgentLink): void {
    const { agentId } = link.peer;
    this.#links.add(link);
    const count = (this.#newest.get(agentId)?.count ?? 0) + 1;
    this.#newest.set(agentId, { atMs: link.lastHeardMs, count });
    this.#carriers.add(link.peer.carrier);
    this.#join(link);
  }

  #join(link: AgentLink): void {
    const key = LinkGroup.keyOf(link.peer);
    const known = this.#groups.get(key);
    const group = known ?? new LinkGroup(link.peer);
    group.add(link);
    this.#groupOf.set(link, group);
    if (known !== undefined) return this.#index.update(group);
    this.#index.add(group);
    this.#groups.set(key, group);
    this.#names.add(group);
  }

  #leave(link: AgentLink): void {
    const group = this.#groupOf.get(link)!;
    this.#groupOf.delete(link);
    group.remove(link);
    if (!group.isEmpty) return;
    this.#groups.delete(LinkGroup.keyOf(link.peer));
    this.#names.remove(group);
    this.#index.remove(group);
  }

  /** Forgets `link`; harmless when it is not there. */
  remove(link: AgentLink): void {
    if (!this.#links.delete(link)) return;
    const { agentId, remoteAddress } = link.peer;
    const newest = this.#newest.get(agentId)!;
    if (--newest.count === 0) this.#newest.delete(agentId);
    this.#carriers.add(link.peer.carrier, -1);
    this.#dialed.delete(link);
    this.#leave(link);
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
    const link = this.#choose(this.#index.list(target, node));
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
    return this.#choose(this.#index.list(target, node), isWanted);
  }

  /** Whether more agents than one could be picked. */
  hasChoice(target: DialTarget, node: string | undefined): boolean {
    return (this.#index.list(target, node)?.all.length ?? 0) > 1;
  }

  /** The strategy that finds the agents for a target, if one does. */
  strategyFor(target: DialTarget): StrategyName | undefined {
    return this.#index.strategyFor(target);
  }

  /**
   * Its agent was asked to link elsewhere: it counts as draining, and serves
   * only what no other agent serves.
   */
  preferOthers(link: AgentLink): void {
    if (this.#links.has(link)) this.#unwanted.add(link);
  }

  /** Whether its agent was asked to go elsewhere. */
  isUnwanted(link: AgentLink): boolean {
    return this.#unwanted.has(link);
  }

  /** Whether a link of ours is neither silent nor draining. */
  isHealthy(link: AgentLink): boolean {
    return this.#rankOf(link) === Rank.healthy;
  }

  #choose(
    candidates: AgentList | undefined,
    isWanted?: (link: AgentLink) => boolean,
  ): AgentLink | undefined {
    const agent = candidates?.choose(
      this.#rankOf,
      this.options.random,
      isWanted && ((agent) => agent.has(isWanted)),
    );
    const nowMs = this.options.clock.now();
    const link = agent?.pick(this.#rankOf, nowMs, isWanted);
    if (link !== undefined) this.#dialed.add(link);
    return link;
  }

  readonly #rankOf = (link: AgentLink): Rank => {
    if (link.isDraining || this.#unwanted.has(link)) return Rank.draining;
    // An agent that lost its line without a FIN comes back on a new link while
    // the old one still looks alive. A link that received nothing since is silent.
    const newest = this.#newest.get(link.peer.agentId);
    const isOlder = newest !== undefined && link.lastHeardMs < newest.atMs;
    const isSilent = isOlder || link.askedMs !== undefined &&
        isStill(link, this.options.clock.now());
    return isSilent ? Rank.silent : Rank.healthy;
  };

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

/** When and from where departed agents were last seen, for refusals. */
class LastSeen {
  // In order of departure, because `note` moves a key to the end.
  readonly #seen = new Map<string, Sighting>();

  constructor(private readonly clock: Clock) {}

  /** Remembers that `key` was seen until now. */
  note(key: string, remoteAddress: string): void {
    const sighting = { atMs: this.clock.now(), remoteAddress };
    setNewest(this.#seen, key, sighting, LAST_SEEN_MAX);
  }

  /** Whether it was here, and is remembered. */
  has(key: string): boolean {
    return this.#seen.has(key);
  }

  /** Such as `last seen 42 s ago from 10.0.0.7`, or `never seen`. */
  describe(key: string): string {
    const seen = this.#seen.get(key);
    if (seen === undefined) return "never seen";
    const ago = formatAge(this.clock.now() - seen.atMs);
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

/** They are unauthenticated, so their announcements may be false. */
const ANONYMOUS = "";

/**
 * Whose links a change of one node's record may be about, without a look at all
 * links: ten thousand nodes that join at one time are as many changes.
 *
 * @returns In normal form, the certificate's name included.
 */
function nodeNamesOf(
  { agentId, identity, identifiers }: LinkGroup["peer"],
): readonly string[] {
  const { kind, commonName } = identity;
  const node = commonName.startsWith(NODE_SUBJECT_PREFIX)
    ? commonName.slice(NODE_SUBJECT_PREFIX.length)
    : commonName;
  const { host, uid } = identifiers;
  const names = [agentId, node, ...host, ...uid].map(nameKey);
  return kind === "anonymous" ? [...names, ANONYMOUS] : names;
}
