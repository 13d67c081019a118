/**
 * Connected agents as a source of the catalog: what their nodes offer, reachable
 * through them.
 *
 * An agent's endpoints are `ready` while one of its links stands (`serving` while
 * all of them drain), `unready` from the moment at which the last one is lost,
 * and forgotten ten minutes later, or when the agent says so itself. What counts
 * is what was announced last, on whichever link. Agents that announce one service
 * are endpoints of one service.
 *
 * A server that has just started has no links. Before agents had the time to
 * come back, what is missing here may exist, so the source is not synced: else
 * every proxy would be told that all of it is gone. Who was there not long ago
 * (`member_memory.ts`) is waited for a little longer, and then there as one that
 * is lost.
 *
 * It refuses to know what an agent may announce (`announcement.ts`), and which
 * link a dial will take.
 *
 * @module
 */

import type { Sink, Source } from "../../../catalog/model/source.ts";
import type { Log } from "../../../platform/log/log.ts";
import type {
  AnnouncedService,
  ServiceRefusal,
} from "../../../proto/link/link_messages.ts";
import type { AgentLink, LinkPeer } from "../../../proto/link/link.ts";
import type { Timer, Timers } from "../../../proto/sync/clock.ts";
import { unawaited } from "../../../platform/errors/internal_errors.ts";
import { provenNames } from "../../identity/proven_names.ts";
import type { AnnouncementDecision, Offer } from "./announcement.ts";
import type { MemberMemory } from "./member_memory.ts";
import { endpointsFrom, type Member, serviceFrom } from "./offered_service.ts";

/** How long an agent that is gone is remembered. */
export const FORGET_MS = 600_000;

/**
 * How long agents have to come back after the server's start. They try at once
 * and then at growing intervals: nearly all of 200 were back in 2 s.
 */
export const SETTLE_MS = 2_000;

/** The same while agents are known that are not back yet. */
export const KNOWN_SETTLE_MS = 5_000;

/** What has changed is kept after this long, together with what follows it. */
export const KEEP_MS = 3_000;

/** When nothing changes, it is kept so often that agents were there until now. */
export const KEEP_AGAIN_MS = 120_000;

/**
 * An agent is heard at once, and then so often at most: what it says meanwhile
 * waits, and only the last of it counts.
 */
export const ANNOUNCE_INTERVAL_MS = 200;

/**
 * Agents that are remembered although they are gone; beyond it the one that is
 * gone for longest is forgotten. Who comes back under ever new names must not
 * fill memory.
 */
export const LOST_AGENTS_MAX = 10_000;

/**
 * One change is said at once, what follows within this time together: each costs
 * a copy of the catalog's maps, and thousands of agents may come at one moment.
 */
export const GATHER_MS = 20;

/** Refusals of one announcement that are logged. */
const LOGGED_REFUSALS_MAX = 5;

/** What the source needs from outside. */
export interface MembershipOptions {
  readonly log: Log;
  readonly timers: Timers;
  authorize(
    peer: LinkPeer,
    services: readonly AnnouncedService[],
  ): AnnouncementDecision;
  /** {@linkcode SETTLE_MS} unless given. */
  readonly settleMs?: number;
  /** Absent: a start begins with nothing. */
  readonly memory?: MemberMemory;
  /** Milliseconds since 1970; for what is kept. */
  readonly now?: () => number;
  /** Whether a node may offer a service still; everybody everything if absent. */
  mayOffer?(node: string, service: string): boolean;
}

/** See the module description. */
export class MembershipSource implements Source {
  readonly name = "agents";
  readonly #options: MembershipOptions;
  readonly #agents = new Map<string, Agent>();
  /** By service: who offers it, by agent id. */
  readonly #offers = new Map<string, Map<string, Agent>>();
  /** Those without a link, in the order in which they went. */
  readonly #lost = new Set<Agent>();
  #sink: Sink | undefined;
  #settling: Timer | undefined;
  /** Services that changed and are yet to be said. */
  readonly #touched = new Set<string>();
  #gathering: Timer | undefined;
  /** Who was there before the start and is not back. */
  readonly #awaited = new Set<Agent>();
  #keeping: Timer | undefined;
  /** Since it was kept. */
  #isChanged = false;
  /** The last saving, for the end to wait for. */
  #saving: Promise<void> = Promise.resolve();
  #recalling: Promise<void> = Promise.resolve();

  constructor(options: MembershipOptions) {
    this.#options = options;
  }

  /** Agents that offer something, and those that did until they were lost. */
  get agents(): number {
    return [...this.#agents.values()]
      .filter(({ offers }) => offers.length > 0).length;
  }

  start(sink: Sink): void {
    this.#sink = sink;
    this.#report(this.#offers.keys());
    const { settleMs = SETTLE_MS, timers, memory } = this.#options;
    if (settleMs === 0) return sink.synced();
    this.#settling = timers.after(settleMs, () => this.#settle());
    if (memory === undefined) return;
    this.#recalling = this.#recall(memory, settleMs);
    unawaited("catalog", this.#recalling);
    this.#keepIn(KEEP_AGAIN_MS);
  }

  async stop(): Promise<void> {
    await this.#recalling;
    this.#sink = undefined;
    this.#settling?.cancel();
    this.#gathering?.cancel();
    this.#keeping?.cancel();
    for (const agent of this.#agents.values()) agent.timer?.cancel();
    if (this.#options.memory !== undefined) this.#keep();
    await this.#saving;
  }

  /** Who was there not long ago is there again, without a link for now. */
  async #recall(memory: MemberMemory, settleMs: number): Promise<void> {
    const { timers, now = Date.now, mayOffer } = this.#options;
    const agents = await memory.load();
    if (this.#sink === undefined) return;
    const nowMs = now();
    let areAllBack = false;
    for (const { id, node, offers, seenMs } of agents) {
      // A clock that was set says nothing of how long ago it was.
      const agoMs = Math.max(0, nowMs - seenMs);
      const allowed = offers.filter(({ service }) =>
        mayOffer?.(node, service) ?? true
      );
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
    const most = Math.max(settleMs, KNOWN_SETTLE_MS);
    this.#settling = timers.after(most, () => this.#settle());
  }

  /** What is not here now is not there. */
  #settle(): void {
    if (this.#settling === undefined) return;
    this.#settling.cancel();
    this.#settling = undefined;
    this.#awaited.clear();
    this.#flush();
    this.#sink?.synced();
  }

  #keepIn(ms: number): void {
    if (this.#options.memory === undefined || this.#sink === undefined) return;
    this.#keeping?.cancel();
    this.#keeping = this.#options.timers.after(ms, () => {
      this.#keep();
      this.#keepIn(KEEP_AGAIN_MS);
      this.#isChanged = false;
    });
  }

  #keep(): void {
    const { now = Date.now, memory } = this.#options;
    const nowMs = now();
    const agents = [...this.#agents.values()]
      .filter(({ offers }) => offers.length > 0)
      .map(({ id, node, offers, links, seenMs }) => ({
        ...{ id, node, offers },
        seenMs: links.size > 0 ? nowMs : seenMs,
      }));
    this.#saving = this.#saving.then(() => memory!.save(agents));
  }

  /** Links cannot be missed: there is nothing to read again. */
  reconcile(): Promise<void> {
    return Promise.resolve();
  }

  /** An agent's link stands. */
  linked(link: AgentLink): void {
    const { agentId } = link.peer;
    let agent = this.#agents.get(agentId);
    if (agent === undefined) {
      this.#agents.set(agentId, agent = new Agent(agentId));
    }
    if (this.#lost.delete(agent)) this.#stopTimer(agent);
    agent.links.add(link);
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
    agent.seenMs = (this.#options.now ?? Date.now)();
    if (agent.offers.length === 0) return this.#forget(agent);
    this.#lost.add(agent);
    this.#setTimer(agent, FORGET_MS, () => this.#forget(agent));
    const [oldest] = this.#lost;
    if (this.#lost.size > LOST_AGENTS_MAX) this.#forget(oldest!);
  }

  #forget(agent: Agent): void {
    this.#stopTimer(agent);
    this.#awaited.delete(agent);
    this.#lost.delete(agent);
    this.#agents.delete(agent.id);
    this.#offer(agent, []);
  }

  /** Judges all agents again: what they may announce is something else now. */
  reconsider(): void {
    for (const agent of this.#agents.values()) {
      const link = agent.speaker;
      if (link !== undefined && agent.links.has(link)) this.#take(agent, link);
      else if (link === undefined) this.#authorizeRemembered(agent);
    }
  }

  /** Nobody of it is here to be judged whole: its services are, one by one. */
  #authorizeRemembered(agent: Agent): void {
    const { mayOffer } = this.#options;
    if (mayOffer === undefined) return;
    const { node, offers } = agent;
    const allowed = offers.filter(({ service }) => mayOffer(node, service));
    if (allowed.length < offers.length) this.#offer(agent, allowed);
  }

  #onAnnounced(agent: Agent, link: AgentLink): void {
    agent.speaker = link;
    const { timers } = this.#options;
    const waitMs = agent.takenMs + ANNOUNCE_INTERVAL_MS - timers.now();
    if (waitMs <= 0) this.#take(agent, link);
    else if (agent.timer === undefined) {
      this.#setTimer(agent, waitMs, () => {
        const { speaker } = agent;
        if (speaker !== undefined) this.#take(agent, speaker);
      });
    }
    // It is back, or drains: that waits for nobody.
    this.#report(agent.services());
  }

  #take(agent: Agent, link: AgentLink): void {
    agent.takenMs = this.#options.timers.now();
    const { services = [] } = link;
    const { offers, refused } = this.#options.authorize(link.peer, services);
    this.#refuse(agent, link, refused);
    this.#offer(agent, offers);
  }

  /** From now on `agent` offers these, and no others. */
  #offer(agent: Agent, offers: readonly Offer[]): void {
    const touched = new Set(agent.services());
    agent.offers = offers;
    if (!this.#isChanged) this.#keepIn(KEEP_MS);
    this.#isChanged = true;
    for (const { service } of offers) touched.add(service);
    const now = new Set(agent.services());
    for (const service of touched) {
      let members = this.#offers.get(service);
      if (members === undefined) {
        this.#offers.set(service, members = new Map());
      }
      if (now.has(service)) members.set(agent.id, agent);
      else members.delete(agent.id);
    }
    this.#report(touched);
  }

  /** Both ends show it: whoever looks at one of them should not have to guess. */
  #refuse(
    agent: Agent,
    link: AgentLink,
    refused: readonly ServiceRefusal[],
  ): void {
    const before = agent.refusals;
    agent.refusals = JSON.stringify(refused);
    if (refused.length === 0) return;
    link.refuseServices?.(refused);
    // Each of its links says the same.
    if (agent.refusals === before) return;
    const { log } = this.#options;
    for (const { service, reason } of refused.slice(0, LOGGED_REFUSALS_MAX)) {
      log.warn(`agent ${agent.id} may not announce ${service}: ${reason}`);
    }
    if (refused.length <= LOGGED_REFUSALS_MAX) return;
    log.warn(
      `agent ${agent.id} may not announce ` +
        `${refused.length - LOGGED_REFUSALS_MAX} more services`,
    );
  }

  /** Says to the catalog how these services are now, at once or very soon. */
  #report(services: Iterable<string>): void {
    for (const key of services) this.#touched.add(key);
    if (this.#gathering === undefined) this.#flush();
  }

  #flush(): void {
    const sink = this.#sink;
    if (sink === undefined || this.#touched.size === 0) return;
    const keys = [...this.#touched];
    this.#touched.clear();
    this.#gathering = this.#options.timers.after(GATHER_MS, () => {
      this.#gathering = undefined;
      this.#flush();
    });
    sink.together(() => {
      for (const key of keys) this.#reportOne(sink, key);
    });
  }

  #reportOne(sink: Sink, key: string): void {
    const members = this.#offers.get(key);
    if (members === undefined || members.size === 0) {
      this.#offers.delete(key);
      return sink.remove({ services: [key], endpoints: [key] });
    }
    // In the same order whoever came first, so that nothing differs for it.
    const sorted = [...members.values()]
      .sort((one, other) => one.id < other.id ? -1 : 1);
    const service = serviceFrom(key, sorted);
    sink.add({
      services: [service],
      endpoints: [endpointsFrom(service, sorted)],
    });
  }

  #setTimer(agent: Agent, ms: number, act: () => void): void {
    agent.timer?.cancel();
    agent.timer = this.#options.timers.after(ms, () => {
      agent.timer = undefined;
      act();
    });
  }

  #stopTimer(agent: Agent): void {
    agent.timer?.cancel();
    agent.timer = undefined;
  }
}

/** One agent, whatever links it has. */
class Agent implements Member {
  readonly links = new Set<AgentLink>();
  offers: readonly Offer[] = [];
  /** The link on which it spoke last. */
  speaker: AgentLink | undefined;
  /** When its announcement was taken last. */
  takenMs = -Infinity;
  /** Until it is heard again while it is linked, is forgotten while it is not. */
  timer: Timer | undefined;
  /** What was refused last, as it was logged. */
  refusals = "";

  /** The name that it proved; empty: none. */
  node = "";
  /** When its last link was lost, or it was last known to have one. */
  seenMs = 0;

  constructor(readonly id: string) {}

  get state(): "ready" | "serving" | "unready" {
    if (this.links.size === 0) return "unready";
    const isDraining = [...this.links].every((link) => link.isDraining);
    return isDraining ? "serving" : "ready";
  }

  /** `namespace/name`, each once. */
  services(): ReadonlySet<string> {
    return new Set(this.offers.map(({ service }) => service));
  }
}
