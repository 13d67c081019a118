/**
 * The offers of agents that are linked to other servers. Servers share them as
 * ephemeral texts in their common store. A server reports only what it has seen
 * itself, never what it has heard: so a removed offer cannot come back through
 * a third server.
 *
 * An agent's name decides which of a few texts contains it, so a change of one
 * agent changes one text. A server never removes a text while it runs: a
 * missing text means that the server is gone, and that its agents have lost
 * their links.
 *
 * @module
 */

import { fnv1a } from "../../../proto/bytes/fnv1a.ts";
import type { Log } from "../../../platform/log/log.ts";
import {
  type Ephemerals,
  MEMBER_PART,
  type PartChange,
} from "../../../neighbours/store/ephemerals.ts";
import { fittingIn, shardPart } from "../../peers/agent_shards.ts";
import {
  agentsOf,
  type MemberMemory,
  type RememberedAgent,
} from "./member_memory.ts";

/** Texts among which a server's agents are divided. */
export const SHARDS = 64;

/**
 * Longest text: a request of etcd has 1.5 MiB. All together hold 50,000 agents
 * with one service each.
 */
export const SHARD_LENGTH_MAX = 200 * 1024;

/** How long the report of a departed server is kept, the same as for agents. */
const KEPT_MS = 600_000;

/** What `SharedOffers` needs from outside. */
export interface SharedOffersOptions {
  readonly ephemerals: Ephemerals;
  readonly serverId: string;
  /** The id of this process: its own texts are skipped. */
  readonly instanceId: string;
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** The store in which a server keeps its own reports; absent: none. */
  readonly kept?: MemberMemory | undefined;
}

/** Another server's report. */
interface PeerTexts {
  readonly parts: Map<string, readonly RememberedAgent[]>;
  /** When it went; absent: it is there. */
  goneMs: number | undefined;
}

/** See the module description; saved agents are reported to the others, too. */
export class SharedOffers implements PeerOffers, MemberMemory {
  readonly #peers = new Map<string, PeerTexts>();
  readonly #said = new Map<string, string>();
  #current: ReadonlyMap<string, RememberedAgent> = new Map();
  #changed: (() => void) | undefined;
  #problem = "";

  constructor(private readonly options: SharedOffersOptions) {}

  get current(): ReadonlyMap<string, RememberedAgent> {
    return this.#current;
  }

  start(changed: () => void): void {
    this.#changed = changed;
    const { ephemerals, serverId, instanceId } = this.options;
    ephemerals.watch({
      changed: (changes) => this.#apply(changes),
      following: () => this.#problem = "",
      problem: (message) => this.#warn(message),
    });
    ephemerals.put(MEMBER_PART, JSON.stringify({ serverId, instanceId }));
  }

  async stop(): Promise<void> {
    this.#changed = undefined;
    await this.options.ephemerals.close();
  }

  async load(): Promise<readonly RememberedAgent[]> {
    return await this.options.kept?.load() ?? [];
  }

  async save(agents: readonly RememberedAgent[]): Promise<void> {
    if (this.#changed !== undefined) this.#publish(agents);
    await this.options.kept?.save(agents);
  }

  #publish(agents: readonly RememberedAgent[]): void {
    const shards = new Map<string, string[]>();
    for (const part of this.#said.keys()) shards.set(part, []);
    for (const agent of agents) {
      const part = shardPart(fnv1a(agent.id) % SHARDS);
      const { state, seenMs } = agent;
      // Otherwise every text would change each time.
      const entry = { ...agent, seenMs: state === "unready" ? seenMs : 0 };
      shards.getOrInsertComputed(part, () => []).push(JSON.stringify(entry));
    }
    for (const [part, entries] of shards) {
      const text = this.#textOf(entries);
      if (this.#said.get(part) === text) continue;
      this.#said.set(part, text);
      this.options.ephemerals.put(part, text);
    }
  }

  #textOf(entries: readonly string[]): string {
    const fitting = fittingIn(SHARD_LENGTH_MAX, entries.toSorted());
    if (fitting.length < entries.length) {
      this.#warn(
        `Cannot tell other servers of ${entries.length - fitting.length} ` +
          "agents: there are too many",
      );
    }
    return `[${fitting.join(",")}]`;
  }

  #apply(changes: readonly PartChange[]): void {
    const nowMs = this.options.now();
    for (const { instanceId, part, text } of changes) {
      if (instanceId === this.options.instanceId) continue;
      const known = this.#peers.get(instanceId);
      // Until it publishes itself: a server that died may leave parts.
      const peer = known ?? { parts: new Map(), goneMs: nowMs };
      if (text === undefined) {
        if (part === MEMBER_PART) peer.goneMs ??= nowMs;
        continue;
      }
      this.#peers.set(instanceId, peer);
      if (part === MEMBER_PART) peer.goneMs = undefined;
      else peer.parts.set(part, readText(text));
    }
    for (const [instanceId, { goneMs = nowMs }] of this.#peers) {
      if (nowMs - goneMs >= KEPT_MS) this.#peers.delete(instanceId);
    }
    this.#current = mergedOf(this.#peers.values(), nowMs);
    this.#changed?.();
  }

  /** One line for a row of failures. */
  #warn(message: string): void {
    if (message === this.#problem) return;
    this.#problem = message;
    this.options.log.warn(
      `${message}; agents of other servers stay as they were`,
      { code: "TUN905" },
    );
  }
}

/** What cannot be read is left out. */
function readText(text: string): readonly RememberedAgent[] {
  if (text.length > 2 * SHARD_LENGTH_MAX) return [];
  try {
    return agentsOf(JSON.parse(text));
  } catch {
    // Written by another version, or not by one of our servers.
    return [];
  }
}

function mergedOf(
  peers: Iterable<PeerTexts>,
  nowMs: number,
): ReadonlyMap<string, RememberedAgent> {
  const merged = new Map<string, RememberedAgent>();
  for (const { parts, goneMs } of peers) {
    for (const agent of [...parts.values()].flat()) {
      const known: RememberedAgent = {
        ...agent,
        seenMs: agent.state === "unready" ? agent.seenMs : goneMs ?? nowMs,
        state: goneMs === undefined ? agent.state : "unready",
      };
      const other = merged.get(agent.id);
      if (other === undefined || isBetter(known, other)) {
        merged.set(agent.id, known);
      }
    }
  }
  return merged;
}

/** Receives the agents of other servers, never those of this one. */
export interface PeerOffers {
  /**
   * Each agent once: of several servers that name it, the one that counts by
   * {@linkcode isBetter}. Another object after each change.
   */
  readonly current: ReadonlyMap<string, RememberedAgent>;
  /** Begins to look; `changed` is called after each change of `current`. */
  start(changed: () => void): void;
  /** Settles when its last part has stopped. */
  stop(): Promise<void>;
}

const RANKS: Readonly<Record<RememberedAgent["state"], number>> = {
  ready: 2,
  serving: 1,
  unready: 0,
};

/**
 * Whether `one` is a better report of an agent than `other`: a standing link
 * before a lost one, then the later sighting.
 */
export function isBetter(
  one: RememberedAgent,
  other: RememberedAgent,
): boolean {
  const byState = RANKS[one.state] - RANKS[other.state];
  return byState !== 0 ? byState > 0 : one.seenMs > other.seenMs;
}
