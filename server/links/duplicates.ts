/**
 * Finds identities that were copied: two live processes with the key of one
 * agent. A cloned machine causes that, and a stolen key.
 *
 * A restart, a new process beside its predecessor that is draining, the several
 * links of one process and a link whose line was cut are not copies. So no
 * agent is suspected before both have been there for a while, neither of them
 * draining, and both have answered a PING that was sent then.
 *
 * Instance ids distinguish processes. An agent of the packets carrier that
 * sends none, such as Konnectivity's, has one link to a server, and is known by
 * its address. The key must be the same; the certificate may differ, because it
 * is renewed.
 *
 * @module
 */

import { sourceOf } from "../../net/admission/source.ts";
import { StatusCode } from "../../proto/grpc/status.ts";
import type {
  AgentLink,
  LinkAuthorization,
  LinkPeer,
} from "../../proto/link/link.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import type { DuplicatePolicy } from "../options.ts";

/** How long two are beside each other before they are suspected. */
export const SETTLE_MS = 7_000;

/** How long either may take to show that it lives. */
export const DUPLICATE_ANSWER_MS = 3_000;

/** How often one that was found is looked at again. */
export const RECHECK_MS = 60_000;

/** How often an answer is looked for, where a link waits for it. */
const LOOK_MS = 50;

/** One of the processes with an agent's identity. */
export interface DuplicateInstance {
  /** The first characters of its id; empty: it sends none. */
  readonly instance: string;
  /** `ip:port` of its newest link. */
  readonly address: string;
  /** Milliseconds since 1970. */
  readonly sinceMs: number;
}

/** Several live processes of one agent, in order of arrival. */
export interface Duplicate {
  readonly peer: LinkPeer;
  readonly sinceMs: number;
  readonly instances: readonly DuplicateInstance[];
}

/** What `Duplicates` needs from outside. */
export interface DuplicatesOptions {
  readonly policy: DuplicatePolicy;
  readonly timers: Timers;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  readonly observer: {
    /** Two live, for the first time. @returns The warning for both. */
    found(duplicate: Duplicate): string;
    /** They still do. */
    lasts(duplicate: Duplicate): void;
    /** At most one process is left. */
    over(duplicate: Duplicate): void;
    /** A further process is refused. @returns Why, in a sentence for it. */
    refused(others: Duplicate, late: DuplicateInstance): string;
  };
}

/** Watches all agents that prove a key. */
export class Duplicates {
  readonly #agents = new Map<string, Agent>();
  /** Agents with two live processes now. */
  readonly #found = new Set<Agent>();

  constructor(private readonly options: DuplicatesOptions) {}

  /** The number of agents with two live processes now. */
  get count(): number {
    return this.#found.size;
  }

  /** Since when each is found, by agent id; milliseconds since 1970. */
  get current(): ReadonlyMap<string, number> {
    const current = new Map<string, number>();
    for (const { found } of this.#found) {
      if (found === undefined) continue;
      current.set(found.duplicate.peer.agentId, found.duplicate.sinceMs);
    }
    return current;
  }

  linked(link: AgentLink): void {
    const key = agentKey(link.peer);
    if (key === undefined) return;
    const agent = this.#agents.getOrInsertComputed(key, () => new Agent());
    agent.add(link, this.options.wallClock());
    if (agent.candidates.length > 1 && agent.timer === undefined) {
      this.#watch(agent, SETTLE_MS);
    }
  }

  unlinked(link: AgentLink): void {
    const agent = this.#agentOf(link.peer);
    if (agent === undefined) return;
    agent.remove(link);
    this.#settle(agent);
    if (agent.isEmpty) this.#agents.delete(agentKey(link.peer)!);
  }

  /** It may be draining now. */
  changed(link: AgentLink): void {
    const agent = this.#agentOf(link.peer);
    if (agent !== undefined) this.#settle(agent);
  }

  /**
   * Whether another live process has the agent's identity. Used when the second
   * one must be refused.
   */
  admit(peer: LinkPeer): LinkAuthorization {
    if (this.options.policy !== "refuse") return undefined;
    const agent = this.#agentOf(peer);
    const others = agent?.othersThan(peer) ?? [];
    if (others.length === 0) return undefined;
    const { timers, observer } = this.options;
    const askedMs = timers.now();
    for (const other of others) other.checkLiveness();
    return new Promise((resolve) => {
      const look = () => {
        const still = agent!.othersThan(peer);
        if (still.length === 0) return resolve(undefined);
        if (still.some((other) => other.livesSince(askedMs))) {
          const late = factsOf(peer, this.options.wallClock());
          const others = this.#describe(agent!, still, peer);
          const message = observer.refused(others, late);
          return resolve({ code: StatusCode.PERMISSION_DENIED, message });
        }
        if (timers.now() - askedMs >= DUPLICATE_ANSWER_MS) {
          return resolve(undefined);
        }
        timers.after(LOOK_MS, look);
      };
      timers.after(LOOK_MS, look);
    });
  }

  /** Links of all processes that prove this key for this agent. */
  linksOf(peer: LinkPeer): readonly AgentLink[] {
    return this.#agentOf(peer)?.links ?? [];
  }

  /** How many of them were found to live beside each other; 0: none were. */
  instancesOf(peer: LinkPeer): number {
    return this.#agentOf(peer)?.found?.duplicate.instances.length ?? 0;
  }

  /** Forgets its timers. */
  stop(): void {
    for (const agent of this.#agents.values()) agent.timer?.cancel();
    this.#agents.clear();
    this.#found.clear();
  }

  #agentOf(peer: LinkPeer): Agent | undefined {
    const key = agentKey(peer);
    return key === undefined ? undefined : this.#agents.get(key);
  }

  #watch(agent: Agent, afterMs: number): void {
    agent.timer = this.options.timers.after(afterMs, () => this.#ask(agent));
  }

  #ask(agent: Agent): void {
    const { timers } = this.options;
    const askedMs = timers.now();
    for (const candidate of agent.candidates) candidate.checkLiveness();
    agent.timer = timers.after(DUPLICATE_ANSWER_MS, () => {
      agent.timer = undefined;
      this.#conclude(agent, askedMs);
    });
  }

  #conclude(agent: Agent, askedMs: number): void {
    const living = agent.candidates.filter((one) => one.livesSince(askedMs));
    if (living.length < 2) {
      this.#end(agent);
      // One that has not answered may do so yet, or its link will be given up.
      if (agent.candidates.length > 1) this.#watch(agent, SETTLE_MS);
      return;
    }
    const { observer, policy } = this.options;
    const before = agent.found;
    const duplicate = this.#describe(agent, living, living[0]!.peer);
    const message = before?.message ?? observer.found(duplicate);
    agent.found = { duplicate, message };
    this.#found.add(agent);
    if (before !== undefined) observer.lasts(duplicate);
    for (const instance of living) instance.warn(message);
    this.#watch(agent, RECHECK_MS);
    // The first one stays; the others got in while it did not answer.
    if (policy !== "refuse") return;
    const others = { ...duplicate, instances: [living[0]!.facts] };
    for (const instance of living.slice(1)) {
      instance.close(observer.refused(others, instance.facts));
    }
  }

  /** One process less may be there. */
  #settle(agent: Agent): void {
    if (agent.candidates.length > 1) return;
    agent.timer?.cancel();
    agent.timer = undefined;
    this.#end(agent);
  }

  #end(agent: Agent): void {
    if (agent.found === undefined) return;
    const { duplicate } = agent.found;
    agent.found = undefined;
    this.#found.delete(agent);
    this.options.observer.over(duplicate);
  }

  #describe(
    agent: Agent,
    instances: readonly Instance[],
    peer: LinkPeer,
  ): Duplicate {
    const sinceMs = agent.found?.duplicate.sinceMs ?? this.options.wallClock();
    return { peer, sinceMs, instances: instances.map((one) => one.facts) };
  }
}

/** An agent by its name and its key. */
class Agent {
  readonly #instances = new Map<string, Instance>();
  timer: Timer | undefined;
  /** Two of its processes live: the last report about it. */
  found:
    | { readonly duplicate: Duplicate; readonly message: string }
    | undefined;

  get isEmpty(): boolean {
    return this.#instances.size === 0;
  }

  get links(): readonly AgentLink[] {
    return [...this.#instances.values()].flatMap(({ links }) => links);
  }

  /** Those that are not draining, in order of arrival. */
  get candidates(): readonly Instance[] {
    return [...this.#instances.values()].filter(({ isStaying }) => isStaying);
  }

  othersThan(peer: LinkPeer): readonly Instance[] {
    const key = instanceKey(peer);
    return this.candidates.filter((one) => instanceKey(one.peer) !== key);
  }

  add(link: AgentLink, nowMs: number): void {
    const key = instanceKey(link.peer);
    const instance = this.#instances.get(key);
    if (instance !== undefined) instance.links.push(link);
    else this.#instances.set(key, new Instance([link], nowMs));
  }

  remove(link: AgentLink): void {
    const key = instanceKey(link.peer);
    const instance = this.#instances.get(key);
    if (instance === undefined) return;
    instance.links.splice(instance.links.indexOf(link), 1);
    if (instance.links.length === 0) this.#instances.delete(key);
  }
}

/** One process, with at least one link. */
class Instance {
  #isWarned = false;

  constructor(readonly links: AgentLink[], readonly sinceMs: number) {}

  get peer(): LinkPeer {
    return this.links.at(-1)!.peer;
  }

  get facts(): DuplicateInstance {
    return factsOf(this.peer, this.sinceMs);
  }

  get isStaying(): boolean {
    return this.links.some(({ isDraining }) => !isDraining);
  }

  checkLiveness(): void {
    for (const link of this.links) link.checkLiveness();
  }

  livesSince(atMs: number): boolean {
    return this.links.some(({ lastHeardMs }) => lastHeardMs > atMs);
  }

  /** Sends the warning, once. */
  warn(message: string): void {
    if (this.#isWarned) return;
    this.#isWarned = true;
    this.links[0]!.warnOfDuplicate?.(message);
  }

  close(reason: string): void {
    for (const link of [...this.links]) link.close(reason);
  }
}

/** @returns `undefined` for an agent that proves no key. */
function agentKey({ agentId, identity }: LinkPeer): string | undefined {
  const { certificate } = identity;
  return certificate && `${certificate.publicKeySha256} ${agentId}`;
}

/**
 * Agents of an older version have several links, from any address: all of them
 * count as one process. An agent of a newer version is a process of its own.
 */
function instanceKey(
  { instanceId, carrier, remoteAddress }: LinkPeer,
): string {
  if (instanceId !== undefined) return instanceId;
  return carrier === "streams" ? "older" : `from ${sourceOf(remoteAddress)}`;
}

function factsOf(
  { instanceId = "", remoteAddress }: LinkPeer,
  sinceMs: number,
): DuplicateInstance {
  return { instance: instanceId.slice(0, 8), address: remoteAddress, sinceMs };
}
