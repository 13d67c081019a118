/**
 * This server's membership: it publishes itself and its agents, follows the
 * other servers, and tells the rest of the program.
 *
 * No failure here stops a server. Without the store it goes on with the servers
 * that it has seen.
 *
 * @module
 */

import type { MetricRegistry } from "../../platform/metrics/metrics.ts";
import type { DialTarget } from "../../proto/peer/dial_error.ts";
import { quoted } from "../../proto/peer/quoted.ts";
import type { PeerServer } from "../../proto/link/link_messages.ts";
import type { LinkPeer } from "../../proto/link/link.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { shownGauge } from "../metrics/metric_families.ts";
import type { PeerAnnouncement } from "../links/agent_port.ts";
import type { StrategyName } from "../options.ts";
import { AgentShards } from "./agent_shards.ts";
import {
  type EphemeralEvents,
  type Ephemerals,
  MEMBER_PART,
} from "../../neighbours/store/ephemerals.ts";
import { formatMember, type MemberRecord } from "./member_record.ts";
import { Members } from "./members.ts";
import { PeerIndex } from "./known_agents.ts";
import { type PeerProblem, PeerProblems } from "./peer_problems.ts";
import type { Peer, Peers } from "./peers.ts";

/** Changes of agents that come this close together are written at once. */
export const MEMBERS_GATHER_MS = 50;

/** Least time between two writes: agents come and go in crowds. */
export const WRITE_MS = 1_000;

/** How often a server writes what its clock shows. */
export const CLOCK_PUBLISH_MS = 20_000;

/** What `Membership` needs from outside. */
export interface MembershipEnvironment {
  readonly serverId: string;
  readonly instanceId: string;
  readonly software: string;
  /** Fewer servers than this are not reported to agents. */
  readonly serverCount: number;
  /** Servers named by a flag, whose agents are not known. */
  readonly fixed: readonly Peer[];
  readonly strategies: readonly StrategyName[];
  readonly timers: Timers;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  readonly metrics: MetricRegistry;
  warn(line: string): void;
  event(line: string): void;
}

/** Facts that are known once the server listens. */
export interface MembershipStart {
  /** The address for its agents; empty when that is not certain. */
  readonly address: string;
  /** Absent: servers do not meet. */
  readonly ephemerals?: Ephemerals | undefined;
  /** Ids of those that this server trusts now. */
  readonly authorities: () => readonly string[];
  /** Agents have to be told. */
  readonly onAnnouncement: (announcement: PeerAnnouncement) => void;
}

export class Membership implements Peers {
  readonly #index: PeerIndex;
  readonly #members: Members;
  readonly #problems: PeerProblems;
  readonly #agents = new AgentShards();
  readonly #startedMs: number;
  #started: MembershipStart | undefined;
  #all: readonly Peer[] = [];
  #announced = "";
  /** Whether the view of the others is current, and since when it is not. */
  #view: "unknown" | "followed" | "away" = "unknown";
  #hasWarned = false;
  #writing: Timer | undefined;
  #clock: Timer | undefined;
  #writtenMs = -Infinity;
  #isRetired = false;
  #stopped: Promise<void> | undefined;

  constructor(private readonly options: MembershipEnvironment) {
    this.#startedMs = options.wallClock();
    this.#index = new PeerIndex(options.strategies);
    this.#members = new Members({
      ...options,
      index: this.#index,
      onChanged: () => this.#changed(),
    });
    this.#problems = new PeerProblems(options);
    this.#all = options.fixed
      .filter(({ serverId }) => serverId !== options.serverId);
    shownGauge(
      options.metrics,
      "peers",
      "Other servers that are known.",
      () => this.#others().size,
    );
  }

  get all(): readonly Peer[] {
    return this.#all;
  }

  find(target: DialTarget, node: string | undefined): readonly Peer[] {
    const having = this.#index.find(target, node)
      .filter((peer) =>
        peer.address !== "" && this.#members.has(peer) &&
        !this.#isPredecessor(peer)
      );
    // And those of whose agents not all are known.
    const vague = this.#all.filter((peer) =>
      peer.agentsAreKnown !== true && !having.includes(peer)
    );
    return [...having, ...vague];
  }

  /** Ids of agents that other servers say they have, and of those servers. */
  agentsElsewhere(): ReadonlyMap<string, readonly string[]> {
    return this.#members.agents();
  }

  /** Problems of other servers, one sentence each. */
  get problems(): readonly PeerProblem[] {
    return this.#problems.current;
  }

  /** How many servers there are, for agents; this one included. */
  get serverCount(): number {
    const { serverId, serverCount } = this.options;
    return Math.max(serverCount, new Set(this.#others()).add(serverId).size);
  }

  /** For an agent that has just linked; absent: there is no news. */
  get announcement(): PeerAnnouncement | undefined {
    const isKnown = this.#started?.ephemerals === undefined
      ? this.options.fixed.length > 0
      : this.#view !== "unknown";
    if (!isKnown) return undefined;
    const instances = new Map<Peer, string>();
    for (const { record, peer } of this.#members.others()) {
      instances.set(peer, record.instanceId);
    }
    const { serverId, instanceId } = this.options;
    const address = this.#isRetired ? "" : this.#started?.address ?? "";
    const own = { serverId, instanceId, address };
    const others = this.#all.map((peer) => ({
      serverId: peer.serverId,
      address: peer.address,
      instanceId: instances.get(peer) ?? "",
    }));
    const servers = [...others, ...address === "" ? [] : [own]].sort((a, b) =>
      orderOf(a) < orderOf(b) ? -1 : 1
    );
    return { servers, serverCount: this.serverCount };
  }

  /** The server listens: others may know. */
  start(start: MembershipStart): void {
    this.#started = start;
    if (start.ephemerals === undefined) return;
    start.ephemerals.watch(this.#events());
    this.#publishMember();
    this.#agentsChanged();
  }

  linked(peer: LinkPeer): void {
    if (this.#agents.add(peer)) this.#agentsChanged();
  }

  unlinked(peer: LinkPeer): void {
    if (this.#agents.remove(peer)) this.#agentsChanged();
  }

  /** The server is going: others do not count it any more; it sees them. */
  retire(): void {
    if (this.#isRetired) return;
    this.#isRetired = true;
    this.#writing?.cancel();
    this.#clock?.cancel();
    this.#members.retire();
    this.#started?.ephemerals?.put(MEMBER_PART, undefined);
  }

  /** Settles when the published entry is removed, or cannot be. */
  stop(): Promise<void> {
    this.retire();
    this.#members.stop();
    return this.#stopped ??= Promise.resolve(
      this.#started?.ephemerals?.close(),
    );
  }

  // --- What this server publishes ----------------------------------------------

  get #record(): MemberRecord {
    const { serverId, instanceId, software, wallClock } = this.options;
    return {
      serverId,
      instanceId,
      address: this.#started?.address ?? "",
      startedMs: this.#startedMs,
      nowMs: wallClock(),
      authorities: this.#started?.authorities() ?? [],
      software,
    };
  }

  #publishMember(): void {
    if (this.#isRetired) return;
    this.#started!.ephemerals!.put(MEMBER_PART, formatMember(this.#record));
    this.#look();
    this.#clock = this.options.timers.after(
      CLOCK_PUBLISH_MS,
      () => this.#publishMember(),
    );
  }

  #agentsChanged(): void {
    const { timers } = this.options;
    const ephemerals = this.#started?.ephemerals;
    if (ephemerals === undefined || this.#isRetired) return;
    if (this.#writing !== undefined || !this.#agents.hasChanged) {
      return;
    }
    const dueMs = this.#writtenMs + WRITE_MS - timers.now();
    this.#writing = timers.after(Math.max(MEMBERS_GATHER_MS, dueMs), () => {
      this.#writing = undefined;
      this.#writtenMs = timers.now();
      for (const [part, text] of this.#agents.take()) {
        ephemerals.put(part, text);
      }
    });
  }

  // --- What others publish -----------------------------------------------------

  #events(): EphemeralEvents {
    const { warn, event } = this.options;
    return {
      changed: (changes) => {
        if (this.#stopped === undefined) this.#members.apply(changes);
      },
      following: () => {
        this.#view = "followed";
        this.#members.back();
        if (this.#hasWarned) event("the other servers are followed again");
        this.#hasWarned = false;
        this.#changed();
      },
      problem: (message) => {
        this.#members.away();
        if (this.#view === "followed") this.#view = "away";
        // One line for a row of failures.
        if (this.#hasWarned) return;
        this.#hasWarned = true;
        warn(
          this.#view === "unknown"
            ? `${message}; agents are not told of other servers`
            : `${message}; the servers that were seen last count for an hour`,
        );
      },
    };
  }

  /**
   * A leftover of this server's earlier run: a dial to it reaches this process.
   */
  #isPredecessor({ serverId, address }: Peer): boolean {
    return serverId === this.options.serverId &&
      address === this.#started?.address;
  }

  /** Ids of the others. */
  #others(): Set<string> {
    const ids = new Set(this.options.fixed.map(({ serverId }) => serverId));
    for (const { record } of this.#members.others()) ids.add(record.serverId);
    ids.delete(this.options.serverId);
    return ids;
  }

  #changed(): void {
    const { serverId, fixed } = this.options;
    // Several processes may share an address and its connections.
    const seen: Peer[] = [];
    const ids = new Set<string>([serverId]);
    for (const { record, peer } of this.#members.others()) {
      // A flag may name the address that the server cannot know itself.
      if (peer.address === "" || this.#isPredecessor(peer)) continue;
      ids.add(record.serverId);
      seen.push(peer);
    }
    const before = this.#all;
    this.#all = [
      ...seen,
      ...fixed.filter((peer) => !ids.has(peer.serverId)),
    ];
    this.#log(before, "gone: agents no longer learn of it", this.#all);
    this.#log(this.#all, "there", before);
    this.#look();
    const { announcement } = this;
    if (announcement === undefined) return;
    const text = JSON.stringify(announcement);
    if (text === this.#announced) return;
    this.#announced = text;
    this.#started?.onAnnouncement(announcement);
  }

  #log(some: readonly Peer[], how: string, others: readonly Peer[]): void {
    for (const peer of some) {
      if (others.includes(peer)) continue;
      const who = `server ${quoted(peer.serverId)} at ${peer.address}`;
      this.options.event(`${who} is ${how}`);
    }
  }

  #look(): void {
    const nowMs = this.options.timers.now();
    const here = { record: this.#record, nowMs };
    this.#problems.look(here, this.#members.others());
  }
}

function orderOf({ address, instanceId }: PeerServer): string {
  return `${address} ${instanceId}`;
}
