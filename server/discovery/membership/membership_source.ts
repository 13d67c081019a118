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
 * A server that has just started knows of nobody. Before agents had the time to
 * come back, what is missing here may exist, so the source is not synced: else
 * every proxy would be told that all of it is gone.
 *
 * It refuses to know what an agent may announce (`announcement.ts`), and which
 * link a dial will take.
 *
 * @module
 */

import type { Sink, Source } from "../../../catalog/source.ts";
import type { Log } from "../../../host/process/log.ts";
import type {
  AnnouncedService,
  ServiceRefusal,
} from "../../../proto/link/control_messages.ts";
import type { AgentLink, LinkPeer } from "../../../proto/link/link.ts";
import type { Timer, Timers } from "../../../proto/sync/clock.ts";
import type { Judged, Offer } from "./announcement.ts";
import { endpointsFrom, type Member, serviceFrom } from "./offered_service.ts";

/** How long an agent that is gone is remembered. */
export const FORGET_MS = 600_000;

/**
 * How long agents have to come back after the server's start. They try at once
 * and then at growing intervals: nearly all of 200 were back in 2 s.
 */
export const SETTLE_MS = 2_000;

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
  judge(peer: LinkPeer, services: readonly AnnouncedService[]): Judged;
  /** {@linkcode SETTLE_MS} unless given. */
  readonly settleMs?: number;
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
    this.#say(this.#offers.keys());
    const { settleMs = SETTLE_MS, timers } = this.#options;
    if (settleMs === 0) return sink.synced();
    this.#settling = timers.after(settleMs, () => {
      this.#flush();
      sink.synced();
    });
  }

  stop(): Promise<void> {
    this.#sink = undefined;
    this.#settling?.cancel();
    this.#gathering?.cancel();
    for (const agent of this.#agents.values()) agent.timer?.cancel();
    return Promise.resolve();
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
    this.#heard(agent, link);
  }

  /** An agent announces something else, or that it drains. */
  changed(link: AgentLink): void {
    const agent = this.#agents.get(link.peer.agentId);
    if (agent?.links.has(link)) this.#heard(agent, link);
  }

  /** An agent's link is gone. */
  unlinked(link: AgentLink): void {
    const agent = this.#agents.get(link.peer.agentId);
    if (!agent?.links.delete(link)) return;
    this.#say(agent.services());
    if (agent.links.size > 0) return;
    if (agent.offers.length === 0) return this.#forget(agent);
    this.#lost.add(agent);
    this.#setTimer(agent, FORGET_MS, () => this.#forget(agent));
    const [oldest] = this.#lost;
    if (this.#lost.size > LOST_AGENTS_MAX) this.#forget(oldest!);
  }

  #forget(agent: Agent): void {
    this.#stopTimer(agent);
    this.#lost.delete(agent);
    this.#agents.delete(agent.id);
    this.#offer(agent, []);
  }

  /** Judges all agents again: what they may announce is something else now. */
  reconsider(): void {
    for (const agent of this.#agents.values()) {
      const link = agent.speaker;
      if (link !== undefined && agent.links.has(link)) this.#take(agent, link);
    }
  }

  #heard(agent: Agent, link: AgentLink): void {
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
    this.#say(agent.services());
  }

  #take(agent: Agent, link: AgentLink): void {
    agent.takenMs = this.#options.timers.now();
    const { services = [] } = link;
    const { offers, refused } = this.#options.judge(link.peer, services);
    this.#refuse(agent, link, refused);
    this.#offer(agent, offers);
  }

  /** From now on `agent` offers these, and no others. */
  #offer(agent: Agent, offers: readonly Offer[]): void {
    const touched = new Set(agent.services());
    agent.offers = offers;
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
    this.#say(touched);
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
  #say(services: Iterable<string>): void {
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
      for (const key of keys) this.#sayOne(sink, key);
    });
  }

  #sayOne(sink: Sink, key: string): void {
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
