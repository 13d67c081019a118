/**
 * Connected agents as a source of the catalog: the services that their nodes
 * offer, reachable through them.
 *
 * An agent's endpoints are `ready` while one of its links stands (`serving` while
 * all of them drain), and `unready` from the moment at which the last one is lost.
 * They are removed ten minutes later, or when the agent announces so itself. The
 * last announcement counts, on whichever link. Agents that announce one service
 * are endpoints of one service.
 *
 * A server that has just started has no links. What is missing here may exist
 * until agents had the time to reconnect, so the source is not synced before: else
 * every proxy would remove all of it. An agent that was linked not long ago
 * (`member_memory.ts`) is awaited a little longer, and then it is an agent whose
 * link is lost.
 *
 * An agent without a link here that is linked to another server (`shared_offers.ts`)
 * is what that server says it is, as far as the rules here allow: a client finds
 * the same at every server. A link of our own says more.
 *
 * It refuses to know what an agent may announce (`announcement.ts`), and which
 * link a dial will take.
 *
 * @module
 */

import type { Tools } from "../../../platform/program/tools.ts";
import type { Sink, Source } from "../../../services/catalog/model/source.ts";
import type { WholeService } from "../../../services/catalog/service_message.ts";
import type {
  AnnouncedService,
  ServiceRefusal,
} from "../../../proto/link/link_messages.ts";
import type { AgentLink, LinkPeer } from "../../../proto/link/link.ts";
import type { Timer } from "../../../proto/sync/clock.ts";
import { unawaited } from "../../../platform/errors/internal_errors.ts";
import { provenNames } from "../../../policy/subject.ts";
import type { AnnouncementDecision, OfferedName } from "./announcement.ts";
import type { MemberMemory, RememberedAgent } from "./member_memory.ts";
import {
  endpointsFrom,
  type OfferingMember,
  serviceFrom,
} from "./offered_service.ts";
import type { PeerOffers } from "./shared_offers.ts";

/** How long an agent without a link is remembered. */
export const FORGET_MS = 600_000;

/**
 * How long agents have to reconnect after the server's start. They try at once
 * and then at growing intervals: nearly all of 200 were back in 2 s.
 */
export const RECONNECT_WAIT_MS = 2_000;

/** The same while a remembered agent is not back yet. */
export const KNOWN_RECONNECT_WAIT_MS = 5_000;

/**
 * A change is saved after this time, together with the changes that follow it.
 */
export const AGENT_KEEP_MS = 3_000;

/** Without a change the times of linked agents are saved this often. */
export const KEEP_AGAIN_MS = 120_000;

/**
 * An agent's announcement is read at once, and later ones at most this often:
 * meanwhile announcements wait, and only the last one counts.
 */
export const ANNOUNCE_INTERVAL_MS = 200;

/**
 * Agents without a link that are remembered; beyond it the one that is gone for
 * longest is forgotten. An agent that reconnects under ever new names must not
 * fill memory.
 */
export const LOST_AGENTS_MAX = 10_000;

/**
 * One change is reported at once, those that follow within this time together:
 * each costs a copy of the catalog's maps, and thousands of agents may come at
 * one moment.
 */
export const REPORT_INTERVAL_MS = 20;

/** Refusals of one announcement that are logged. */
const LOGGED_REFUSALS_MAX = 5;

/** What the source needs from outside. */
export interface MembershipSourceOptions extends Tools {
  authorize(
    peer: LinkPeer,
    services: readonly AnnouncedService[],
  ): AnnouncementDecision;
  /** {@linkcode RECONNECT_WAIT_MS} unless given. */
  readonly settleMs?: number | undefined;
  /** Absent: a server starts without remembered agents. */
  readonly memory?: MemberMemory;
  /** Absent: other servers' agents are not known. */
  readonly peers?: PeerOffers;
  /** Milliseconds since 1970; for what is saved. */
  readonly now: () => number;
  /** Whether a node may still offer a service; absent: every node every one. */
  mayOffer?(node: string, service: string): boolean;
}

/** See the module description. */
export class MembershipSource implements Source {
  readonly name = "agents";
  readonly #agents = new Map<string, Agent>();
  /** How many of them offer something. */
  #offering = 0;
  /** By service: the agents that offer it, by id. */
  readonly #offers = new Map<string, Map<string, Agent>>();
  /** Agents without a link, the longest lost first. */
  readonly #lost = new Set<Agent>();
  #sink: Sink | undefined;
  #settling: Timer | undefined;
  /** Changed services that the catalog does not know yet. */
  readonly #touched = new Set<string>();
  #gathering: Timer | undefined;
  /** Agents of an earlier life of this server that have time to come back. */
  readonly #awaited = new Set<Agent>();
  #keeping: Timer | undefined;
  /** Since the last saving. */
  #isChanged = false;
  /** The last saving: the end waits for it. */
  #saving: Promise<void> = Promise.resolve();
  #recalling: Promise<void> = Promise.resolve();

  constructor(private readonly options: MembershipSourceOptions) {}

  /** Agents that offer something, and those that did until they were lost. */
  get agents(): number {
    return this.#offering;
  }

  start(sink: Sink): void {
    this.#sink = sink;
    this.#report(this.#offers.keys());
    const { settleMs = RECONNECT_WAIT_MS, timers, memory } = this.options;
    if (settleMs === 0) sink.synced();
    else this.#settling = timers.after(settleMs, () => this.#settle());
    if (memory === undefined || settleMs === 0) return this.#listen();
    this.#recalling = this.#recall(memory, settleMs)
      .finally(() => this.#listen());
    unawaited("catalog", this.#recalling);
    this.#keepIn(KEEP_AGAIN_MS);
  }

  async stop(): Promise<void> {
    await this.#recalling;
    this.#sink = undefined;
    await this.options.peers?.stop();
    this.#settling?.cancel();
    this.#gathering?.cancel();
    this.#keeping?.cancel();
    for (const agent of this.#agents.values()) agent.timer?.cancel();
    if (this.options.memory !== undefined) this.#keep();
    await this.#saving;
  }

  /** Restores remembered agents, without a link for now. */
  async #recall(memory: MemberMemory, settleMs: number): Promise<void> {
    const { timers, now } = this.options;
    const agents = await memory.load();
    if (this.#sink === undefined) return;
    const nowMs = now();
    let areAllBack = false;
    for (const { id, node, offers, seenMs } of agents) {
      // The clock may have been set back meanwhile.
      const agoMs = Math.max(0, nowMs - seenMs);
      const allowed = this.#allowedOf(node, offers);
      if (agoMs >= FORGET_MS || allowed.length === 0) continue;
      areAllBack = true;
      if (this.#agents.has(id)) continue;
      const agent = new Agent(id);
      agent.node = node;
      agent.seenMs = seenMs;
      this.#agents.set(id, agent);
      this.#lost.add(agent);
      this.#awaited.add(agent);
      this.#setTimer(agent, FORGET_MS - agoMs, () => this.#forget(agent));
      this.#offer(agent, allowed);
      if (this.#lost.size >= LOST_AGENTS_MAX) break;
    }
    if (this.#settling === undefined) return;
    if (this.#awaited.size === 0) {
      return areAllBack ? this.#settle() : undefined;
    }
    this.#settling.cancel();
    const most = Math.max(settleMs, KNOWN_RECONNECT_WAIT_MS);
    this.#settling = timers.after(most, () => this.#settle());
  }

  /** An agent that is not back by now is lost. */
  #settle(): void {
    if (this.#settling === undefined) return;
    this.#settling.cancel();
    this.#settling = undefined;
    this.#awaited.clear();
    this.#flush();
    this.#sink?.synced();
  }

  #keepIn(ms: number): void {
    if (this.options.memory === undefined || this.#sink === undefined) return;
    this.#keeping?.cancel();
    this.#keeping = this.options.timers.after(ms, () => {
      this.#keep();
      this.#keepIn(KEEP_AGAIN_MS);
      this.#isChanged = false;
    });
  }

  #keep(): void {
    const { now, memory } = this.options;
    const nowMs = now();
    const agents = [...this.#agents.values()]
      .filter(({ offers, known }) =>
        offers.length > 0 && known.kind !== "heard"
      )
      .map(({ id, node, offers, links, seenMs, state }) => ({
        ...{ id, node, offers, state },
        seenMs: links.size > 0 ? nowMs : seenMs,
      }));
    this.#saving = this.#saving.then(() => memory!.save(agents));
  }

  /** What an agent announced last and may not, and why. */
  refusalsOf(agentId: string): readonly ServiceRefusal[] {
    const { refusals = "" } = this.#agents.get(agentId) ?? {};
    return refusals === "" ? [] : JSON.parse(refusals);
  }

  /** No link can be missed, so there is nothing to read again. */
  reconcile(): Promise<void> {
    return Promise.resolve();
  }

  /** An agent's link stands. */
  linked(link: AgentLink): void {
    const { agentId } = link.peer;
    const agent = this.#agents.getOrInsertComputed(
      agentId,
      () => new Agent(agentId),
    );
    if (this.#lost.delete(agent)) this.#stopTimer(agent);
    agent.links.add(link);
    agent.known = { kind: "linked" };
    agent.node = provenNames(link.peer.identity)?.[0] ?? "";
    this.#onAnnounced(agent, link);
    const isLast = this.#awaited.delete(agent) && this.#awaited.size === 0;
    if (isLast) this.#settle();
  }

  /** An agent announces something else, or that it drains. */
  changed(link: AgentLink): void {
    const agent = this.#agents.get(link.peer.agentId);
    if (agent?.links.has(link)) this.#onAnnounced(agent, link);
  }

  /** An agent's link is gone. */
  unlinked(link: AgentLink): void {
    const agent = this.#agents.get(link.peer.agentId);
    if (!agent?.links.delete(link)) return;
    this.#report(agent.services());
    if (agent.links.size > 0) return;
    agent.seenMs = this.options.now();
    const elsewhere = this.options.peers?.current.get(agent.id);
    if (elsewhere !== undefined && elsewhere.state !== "unready") {
      return this.#believe(agent, elsewhere);
    }
    if (agent.offers.length === 0) return this.#forget(agent);
    agent.known = { kind: "lost" };
    this.#lose(agent, FORGET_MS);
  }

  /** It has no link, here or elsewhere, and is remembered for a while. */
  #lose(agent: Agent, ms: number): void {
    this.#lost.add(agent);
    this.#setTimer(agent, ms, () => this.#forget(agent));
    const [oldest] = this.#lost;
    if (this.#lost.size > LOST_AGENTS_MAX) this.#forget(oldest!);
  }

  #listen(): void {
    if (this.#sink === undefined) return;
    this.options.peers?.start(() => this.#hear());
  }

  /** Other servers have other agents, or those have something else. */
  #hear(): void {
    const { peers } = this.options;
    if (this.#sink === undefined || peers === undefined) return;
    const { current } = peers;
    for (const [id, elsewhere] of current) {
      const known = this.#agents.get(id);
      if (known === undefined) this.#believe(new Agent(id), elsewhere);
      // Lost here as there: what we have seen ourselves counts.
      else if (known.known.kind === "heard" || elsewhere.state !== "unready") {
        if (known.links.size === 0) this.#believe(known, elsewhere);
      }
    }
    for (const agent of this.#agents.values()) {
      if (agent.known.kind === "heard" && !current.has(agent.id)) {
        this.#forget(agent);
      }
    }
  }

  /** An agent without a link here is what another server says. */
  #believe(
    agent: Agent,
    { node, offers, state, seenMs }: RememberedAgent,
  ): void {
    const leftMs = FORGET_MS - Math.max(0, this.options.now() - seenMs);
    if (state === "unready" && leftMs <= 0) return this.#forget(agent);
    this.#agents.set(agent.id, agent);
    const { known: before } = agent;
    agent.known = { kind: "heard", state };
    agent.node = node;
    agent.seenMs = seenMs;
    if (state === "unready") this.#lose(agent, leftMs);
    else {
      this.#lost.delete(agent);
      this.#stopTimer(agent);
    }
    const allowed = this.#allowedOf(node, offers);
    // A server saves all of its agents each time.
    const isSame = before.kind === "heard" && before.state === state &&
      JSON.stringify(allowed) === JSON.stringify(agent.offers);
    if (!isSame) this.#offer(agent, allowed);
  }

  #forget(agent: Agent): void {
    this.#stopTimer(agent);
    this.#lost.delete(agent);
    this.#awaited.delete(agent);
    agent.known = { kind: "lost" };
    this.#agents.delete(agent.id);
    this.#offer(agent, []);
  }

  /** The rules have changed: authorizes the announcements of all agents again. */
  reconsider(): void {
    for (const agent of this.#agents.values()) {
      const link = agent.speaker;
      if (link !== undefined && agent.links.has(link)) this.#take(agent, link);
      else if (link === undefined) this.#authorizeRemembered(agent);
    }
    this.#hear();
  }

  /** An agent without a link cannot be authorized as a whole: each service is. */
  #authorizeRemembered(agent: Agent): void {
    const { node, offers } = agent;
    const allowed = this.#allowedOf(node, offers);
    if (allowed.length < offers.length) this.#offer(agent, allowed);
  }

  #allowedOf(
    node: string,
    offers: readonly OfferedName[],
  ): readonly OfferedName[] {
    const { mayOffer } = this.options;
    return offers.filter(({ service }) => mayOffer?.(node, service) ?? true);
  }

  #onAnnounced(agent: Agent, link: AgentLink): void {
    agent.speaker = link;
    const { timers } = this.options;
    const waitMs = agent.takenMs + ANNOUNCE_INTERVAL_MS - timers.now();
    if (waitMs <= 0) this.#take(agent, link);
    else if (agent.timer === undefined) {
      this.#setTimer(agent, waitMs, () => {
        const { speaker } = agent;
        if (speaker !== undefined) this.#take(agent, speaker);
      });
    }
    // That it is back, or drains, is reported at once.
    this.#report(agent.services());
  }

  #take(agent: Agent, link: AgentLink): void {
    agent.takenMs = this.options.timers.now();
    const { services = [] } = link;
    const { offers, refused } = this.options.authorize(link.peer, services);
    this.#refuse(agent, link, refused);
    this.#offer(agent, offers);
  }

  /** Replaces the services that `agent` offers. */
  #offer(agent: Agent, offers: readonly OfferedName[]): void {
    const touched = new Set(agent.services());
    this.#offering += Math.sign(offers.length) -
      Math.sign(agent.offers.length);
    agent.offers = offers;
    if (agent.known.kind !== "heard") {
      if (!this.#isChanged) this.#keepIn(AGENT_KEEP_MS);
      this.#isChanged = true;
    }
    for (const { service } of offers) touched.add(service);
    const now = new Set(agent.services());
    for (const service of touched) {
      const members = this.#offers.getOrInsertComputed(
        service,
        () => new Map(),
      );
      if (now.has(service)) members.set(agent.id, agent);
      else members.delete(agent.id);
    }
    this.#report(touched);
  }

  /** Both ends log it, so that people at either end see why. */
  #refuse(
    agent: Agent,
    link: AgentLink,
    refused: readonly ServiceRefusal[],
  ): void {
    const before = agent.refusals;
    agent.refusals = JSON.stringify(refused);
    if (refused.length === 0) return;
    link.refuseServices?.(refused);
    // Each of its links repeats the announcement.
    if (agent.refusals === before) return;
    const { log } = this.options;
    for (const { service, reason } of refused.slice(0, LOGGED_REFUSALS_MAX)) {
      log.warn(`agent ${agent.id} may not announce ${service}: ${reason}`, {
        code: "TUN601",
      });
    }
    if (refused.length <= LOGGED_REFUSALS_MAX) return;
    log.warn(
      `agent ${agent.id} may not announce ` +
        `${refused.length - LOGGED_REFUSALS_MAX} more services`,
      { code: "TUN601" },
    );
  }

  /** Reports these services to the catalog, at once or very soon. */
  #report(services: Iterable<string>): void {
    for (const key of services) this.#touched.add(key);
    if (this.#gathering === undefined) this.#flush();
  }

  #flush(): void {
    const sink = this.#sink;
    if (sink === undefined || this.#touched.size === 0) return;
    const keys = [...this.#touched];
    this.#touched.clear();
    this.#gathering = this.options.timers.after(REPORT_INTERVAL_MS, () => {
      this.#gathering = undefined;
      this.#flush();
    });
    const offered = keys.map((key) => [key, this.#offered(key)] as const);
    sink.change({
      services: new Map(offered.map(([key, one]) => [key, one?.service])),
      endpoints: new Map(offered.map(([key, one]) => [key, one?.endpoints])),
    });
  }

  #offered(key: string): WholeService | undefined {
    const members = this.#offers.get(key);
    if (members === undefined || members.size === 0) {
      this.#offers.delete(key);
      return undefined;
    }
    // The order does not depend on which agent came first.
    const sorted = [...members.values()]
      .sort((one, other) => one.id < other.id ? -1 : 1);
    const service = serviceFrom(key, sorted);
    return { service, endpoints: endpointsFrom(service, sorted) };
  }

  #setTimer(agent: Agent, ms: number, act: () => void): void {
    agent.timer?.cancel();
    agent.timer = this.options.timers.after(ms, () => {
      agent.timer = undefined;
      act();
    });
  }

  #stopTimer(agent: Agent): void {
    agent.timer?.cancel();
    agent.timer = undefined;
  }
}

/** The knowledge about an agent. */
type Known =
  /** It has links here. */
  | { readonly kind: "linked" }
  /** It had, maybe in an earlier life of this server, and lost the last one. */
  | { readonly kind: "lost" }
  /** Only another server's report of it. */
  | { readonly kind: "heard"; readonly state: RememberedAgent["state"] };

/** One agent with all its links. */
class Agent implements OfferingMember {
  readonly links = new Set<AgentLink>();
  offers: readonly OfferedName[] = [];
  /** The link of its last announcement. */
  speaker: AgentLink | undefined;
  /** When its announcement was read last. */
  takenMs = -Infinity;
  /** Until it is read again (linked), or forgotten (not linked). */
  timer: Timer | undefined;
  /** The last refusals, as they were logged. */
  refusals = "";

  /** The name that it proved; empty: none. */
  node = "";
  /** When its last link was lost, or it was last known to have one. */
  seenMs = 0;
  known: Known = { kind: "lost" };

  constructor(readonly id: string) {}

  get state(): RememberedAgent["state"] {
    if (this.links.size === 0) {
      return this.known.kind === "heard" ? this.known.state : "unready";
    }
    const isDraining = [...this.links].every((link) => link.isDraining);
    return isDraining ? "serving" : "ready";
  }

  /** `namespace/name`, each once. */
  services(): ReadonlySet<string> {
    return new Set(this.offers.map(({ service }) => service));
  }
}
