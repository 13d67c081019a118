/**
 * The present servers, as the store shows them, this one included.
 *
 * A server that the store no longer shows is gone, with one exception: when the
 * store no longer shows this very server, which is alive and has published
 * itself. Then the store was emptied, or answers with an empty list, and the
 * others are probably alive as well. They stay until this server is seen again
 * and they had the time to come back, or for `MEMBER_KEEP_MS`. They also stay
 * while the store cannot be read.
 *
 * Why it has no view in common with `shared_offers.ts`, which follows texts of the
 * same servers: there each text is read at once and stands by itself, one that is
 * removed means nothing, and what a departed server said holds for ten minutes.
 * Here texts wait for the one about their owner, each removal counts or is doubted,
 * and thousands of agents go in pieces. All they share is a map in a map.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";
import {
  KnownAgents,
  type KnownPeer,
  type PeerIndex,
  WorkTurns,
} from "./known_agents.ts";
import {
  MEMBER_PART,
  PART_NAME,
  type PartChange,
} from "../../neighbours/store/ephemerals.ts";
import { type MemberRecord, parseMember } from "./member_record.ts";
import type { Peer } from "./peers.ts";

/** Limit on servers that are followed; further ones are ignored. */
const MEMBERS_MAX = 256;

/**
 * How long servers are kept while nothing can be seen of them. They run most
 * likely; those that do not cost agents and callers a connection that fails.
 */
export const MEMBER_KEEP_MS = 3600_000;

/** How long others may take to come back after everything was lost. */
export const RETURN_MS = 30_000;

/** Another server. */
export interface Member {
  readonly record: MemberRecord;
  /** The same object while it is the same server at the same address. */
  readonly peer: Peer;
  /** Milliseconds (clock) since when it is known. */
  readonly sinceMs: number;
  /** By how much its clock is ahead, if it was seen to write. */
  readonly aheadMs: number | undefined;
}

/** The state of one of them. */
interface Known {
  member: (Omit<Member, "peer"> & { readonly peer: KnownPeer }) | undefined;
  /** The member's watch; present as long as the member is. */
  agents: KnownAgents | undefined;
  /** Parts as they came, for when there is no member yet, and to compare. */
  readonly texts: Map<string, string>;
}

/** What `Members` needs from outside. */
export interface MembersOptions {
  /** The record of this server. */
  readonly instanceId: string;
  readonly index: PeerIndex;
  readonly timers: Timers;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  /** Others are there, or say something else of themselves. */
  readonly onChanged: () => void;
}

export class Members {
  readonly #turns: WorkTurns;
  /**
   * The present members: the index may have agents of departed ones for a
   * moment.
   */
  readonly #peers = new Set<Peer>();
  readonly #known = new Map<string, Known>();
  /** Reported departures that are doubted, by server. */
  readonly #doubted = new Map<string, Set<string>>();
  #keeping: Timer | undefined;
  #returning: Timer | undefined;
  /** Whether this server itself is seen: not yet, now, or no more. */
  #own: "unseen" | "seen" | "lost" | "retired" = "unseen";
  /** What changes was written just now. */
  #isFollowing = false;

  constructor(private readonly options: MembersOptions) {
    this.#turns = new WorkTurns(options.timers);
  }

  /** All but this one. */
  *others(): Iterable<Member> {
    for (const { member } of this.#known.values()) {
      if (member !== undefined) yield member;
    }
  }

  /** Ids of agents, and of those servers that have them. */
  agents(): ReadonlyMap<string, readonly string[]> {
    const found = new Map<string, string[]>();
    for (const { member, agents } of this.#known.values()) {
      if (member === undefined || agents === undefined) continue;
      const { serverId } = member.record;
      for (const id of agents.ids()) {
        const servers = found.getOrInsertComputed(id, () => []);
        if (!servers.includes(serverId)) servers.push(serverId);
      }
    }
    return found;
  }

  /** Whether it is there now. */
  has(peer: Peer): boolean {
    return this.#peers.has(peer);
  }

  /** Takes over what a store reports. */
  apply(changes: readonly PartChange[]): void {
    const { instanceId: own } = this.options;
    const about = changes.findLast((change) =>
      change.instanceId === own && change.part === MEMBER_PART
    );
    if (about !== undefined) this.#sawOwn(about.text !== undefined);
    let hasChanged = false;
    for (const change of changes) {
      if (change.instanceId === own || !PART_NAME.test(change.part)) continue;
      hasChanged = this.#take(change) || hasChanged;
    }
    if (hasChanged) this.options.onChanged();
  }

  /** This server is no longer published, so its absence means nothing. */
  retire(): void {
    this.#own = "retired";
  }

  /** Nothing can be seen now. */
  away(): void {
    this.#isFollowing = false;
    this.#keepAll();
  }

  #keepAll(): void {
    this.#keeping ??= this.options.timers.after(MEMBER_KEEP_MS, () => {
      this.#keeping = undefined;
      for (const id of [...this.#known.keys()]) this.#forget(id);
      this.#doubted.clear();
      this.options.onChanged();
    });
  }

  /** Everything is seen again. */
  back(): void {
    this.#isFollowing = true;
    // Entries may have expired while the store was away; their owners write
    // them again.
    if (this.#keeping !== undefined && this.#own === "seen") {
      this.#awaitReturn();
    }
  }

  stop(): void {
    this.#keeping?.cancel();
    this.#returning?.cancel();
    this.#turns.stop();
  }

  #sawOwn(isThere: boolean): void {
    if (this.#own === "retired") return;
    if (!isThere) {
      this.#returning?.cancel();
      this.#returning = undefined;
      if (this.#own === "unseen") return;
      this.#own = "lost";
      return this.#keepAll();
    }
    const wasLost = this.#own === "lost";
    this.#own = "seen";
    if (wasLost) this.#awaitReturn();
  }

  /** A server that does not come back in time is gone. */
  #awaitReturn(): void {
    this.#returning ??= this.options.timers.after(RETURN_MS, () => {
      this.#returning = undefined;
      for (const [id, parts] of this.#doubted) {
        for (const part of parts) this.#remove(id, part);
      }
      this.#doubted.clear();
      this.#keeping?.cancel();
      this.#keeping = undefined;
      this.options.onChanged();
    });
  }

  /** @returns Whether it is news to others than this file. */
  #take({ instanceId, part, text }: PartChange): boolean {
    const doubted = this.#doubted.get(instanceId);
    if (text === undefined) {
      const isDoubtful = this.#own === "lost" || this.#returning !== undefined;
      if (!isDoubtful) return this.#remove(instanceId, part);
      if (this.#known.get(instanceId)?.texts.has(part) !== true) return false;
      this.#doubted.getOrInsertComputed(instanceId, () => new Set()).add(part);
      return false;
    }
    if (doubted?.delete(part) && doubted.size === 0) {
      this.#doubted.delete(instanceId);
    }
    return this.#put(instanceId, part, text);
  }

  #put(instanceId: string, part: string, text: string): boolean {
    let known = this.#known.get(instanceId);
    if (known === undefined) {
      if (this.#known.size >= MEMBERS_MAX) return false;
      known = {
        member: undefined,
        agents: undefined,
        texts: new Map(),
      };
      this.#known.set(instanceId, known);
    }
    if (known.texts.get(part) === text) return false;
    known.texts.set(part, text);
    if (part !== MEMBER_PART) {
      known.agents?.set(part, text);
      return known.member !== undefined;
    }
    const record = parseMember(text);
    if (record === undefined || record.instanceId !== instanceId) {
      return this.#remove(instanceId, part);
    }
    this.#name(known, record);
    return true;
  }

  /** The server has published itself: only now its agents have an owner. */
  #name(known: Known, record: MemberRecord): void {
    const { member } = known;
    const isSame = member?.record.serverId === record.serverId &&
      member.record.address === record.address;
    const { serverId, address } = record;
    const peer = isSame
      ? member!.peer
      : { serverId, address, agentsAreKnown: true };
    if (!isSame) this.#dropAgents(known);
    known.member = {
      record,
      peer,
      sinceMs: member?.sinceMs ?? this.options.timers.now(),
      aheadMs: this.#isFollowing
        ? record.nowMs - this.options.wallClock()
        : member?.aheadMs,
    };
    if (isSame) return;
    const { index } = this.options;
    known.agents = new KnownAgents(peer, index, this.#turns);
    this.#peers.add(peer);
    for (const [part, text] of known.texts) {
      if (part !== MEMBER_PART) known.agents.set(part, text);
    }
  }

  #dropAgents(known: Known): void {
    known.agents?.drop();
    known.agents = undefined;
    if (known.member !== undefined) this.#peers.delete(known.member.peer);
  }

  #remove(instanceId: string, part: string): boolean {
    const known = this.#known.get(instanceId);
    if (known === undefined || !known.texts.delete(part)) return false;
    const wasMember = known.member !== undefined;
    if (part === MEMBER_PART) {
      this.#dropAgents(known);
      known.member = undefined;
    } else known.agents?.set(part, undefined);
    if (known.texts.size === 0) this.#known.delete(instanceId);
    return wasMember;
  }

  #forget(instanceId: string): void {
    const known = this.#known.get(instanceId);
    if (known !== undefined) this.#dropAgents(known);
    this.#known.delete(instanceId);
  }
}
