/**
 * The agents of one other server, as its lists say them, in the index of all.
 *
 * @module
 */

import { type ListedAgent, parseAgent, parseShard } from "./agent_shards.ts";
import type { Peer } from "./peers.ts";
import { Slices } from "../../platform/time/slices.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { DialTarget } from "../../proto/peer/dial_error.ts";
import type { CandidateList } from "../strategies/strategy.ts";
import type { StrategyName } from "../options.ts";
import { AgentIndex } from "../strategies/agent_index.ts";

/** Agents that are looked at in one piece. */
const PIECE = 32;

/** Whether its agents are known changes while it is known. */
export type KnownPeer = { -readonly [Key in keyof Peer]: Peer[Key] };

export class KnownAgents {
  /** By list, by what is written of each. */
  readonly #lists = new Map<string, Map<string, PeerAgent>>();
  /** Lists that leave something out, and those that are still to be read. */
  readonly #cut = new Set<string>();
  readonly #unread = new Map<string, string | undefined>();
  #isDropped = false;

  constructor(
    private readonly peer: KnownPeer,
    private readonly index: PeerIndex,
    private readonly turns: WorkTurns,
  ) {}

  /** Ids of those that are known. */
  *ids(): Iterable<string> {
    for (const agents of this.#lists.values()) {
      for (const { peer } of agents.values()) yield peer.agentId;
    }
  }

  /**
   * Takes a list in place of its earlier text; without text the list is gone.
   */
  set(part: string, text: string | undefined): void {
    const isWaiting = this.#unread.has(part);
    this.#unread.set(part, text);
    this.#judge();
    if (!isWaiting) this.turns.run(this.#read(part));
  }

  /** The server is gone, or another one has its id. */
  drop(): void {
    this.#isDropped = true;
    this.turns.run(this.#dropAll());
  }

  *#read(part: string): Iterator<unknown> {
    const text = this.#unread.get(part);
    this.#unread.delete(part);
    if (this.#isDropped) return;
    const { entries, isWhole } = parseShard(text);
    yield;
    const before = this.#lists.get(part) ?? new Map<string, PeerAgent>();
    const now = new Map<string, PeerAgent>();
    // From here on a removal finds both the old and the new entries.
    this.#lists.set(part, now);
    let pieces = 0;
    for (const entry of entries) {
      const key = JSON.stringify(entry);
      const known = before.get(key);
      before.delete(key);
      const agent = known ?? this.#agentOf(entry);
      if (agent !== undefined) now.set(key, agent);
      if (known === undefined && agent !== undefined) this.index.add(agent);
      if (++pieces % PIECE === 0) yield;
    }
    for (const agent of before.values()) {
      this.index.remove(agent);
      if (++pieces % PIECE === 0) yield;
    }
    if (now.size === 0) this.#lists.delete(part);
    if (isWhole) this.#cut.delete(part);
    else this.#cut.add(part);
    this.#judge();
  }

  *#dropAll(): Iterator<unknown> {
    let pieces = 0;
    for (const agents of this.#lists.values()) {
      for (const agent of agents.values()) {
        this.index.remove(agent);
        if (++pieces % PIECE === 0) yield;
      }
    }
    this.#lists.clear();
  }

  #agentOf(entry: unknown): PeerAgent | undefined {
    const agent = parseAgent(entry);
    return agent && { peer: agent, server: this.peer };
  }

  #judge(): void {
    this.peer.agentsAreKnown = this.#cut.size === 0 && this.#unread.size === 0;
  }
}

// Work on ten thousand agents in small pieces, so that what else is to be done
// waits no longer than for one of them.

export class WorkTurns {
  readonly #jobs: Iterator<unknown>[] = [];
  readonly #slices: Slices;

  constructor(timers: Timers) {
    this.#slices = new Slices(timers, {
      hasMore: () => this.#jobs.length > 0,
      step: () => this.#step(),
    });
  }

  /** Does the work in pieces, after work that waits already; begins at once. */
  run(job: Iterator<unknown>): void {
    this.#jobs.push(job);
    this.#slices.begin();
  }

  stop(): void {
    this.#slices.stop();
    this.#jobs.length = 0;
  }

  #step(): boolean {
    const [job] = this.#jobs;
    if (job === undefined) return false;
    // After an internal error this job ends, and the others go on.
    let isOver = true;
    try {
      isOver = job.next().done === true;
    } finally {
      if (isOver) this.#jobs.shift();
    }
    return true;
  }
}

// Which of the other servers have an agent for a dial, by the same rules by
// which a server finds its own. The search costs the same with ten agents and
// with ten thousand: each list has every server once.

/** An agent, and its server. */
export interface PeerAgent {
  readonly peer: ListedAgent;
  /** The same object for all agents of a server. */
  readonly server: Peer;
}

export class PeerIndex extends AgentIndex<PeerAgent> {
  constructor(strategies: readonly StrategyName[]) {
    super(strategies, () => new ServerList());
  }

  /** Each server once. See `Peers.find`. */
  find(target: DialTarget, node: string | undefined): readonly Peer[] {
    return (this.list(target, node)?.all ?? []).map(({ server }) => server);
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
