/**
 * The agents of other servers, told by ephemeral texts in the store that
 * servers have in common.
 *
 * An agent's name decides in which of a few texts it stands, so that a change of
 * one is a change of one text. A text is never taken back while its server runs:
 * that one is gone means that the server is, whose agents have lost their links
 * then.
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
import {
  isBetter,
  type OfferingAgent,
  type PeerOffers,
} from "./peer_offers.ts";

/** Texts among which a server's agents are divided. */
export const SHARDS = 64;

/**
 * Longest text: a request of etcd has 1.5 MiB. All together hold 50,000 agents
 * with one service each.
 */
export const SHARD_LENGTH_MAX = 200 * 1024;

/** How long what a server that is gone has said is kept, as agents are. */
const KEPT_MS = 600_000;

/** What `SharedOffers` needs from outside. */
export interface SharedOffersOptions {
  readonly ephemerals: Ephemerals;
  readonly serverId: string;
  /** Of this process: what it says itself is not heard. */
  readonly instanceId: string;
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Where a server keeps for itself what it says; absent: nowhere. */
  readonly kept?: MemberMemory;
}

/** What another server has said. */
interface PeerTexts {
  readonly parts: Map<string, readonly RememberedAgent[]>;
  /** When it went; absent: it is there. */
  goneMs: number | undefined;
}

/** See the module description; what is saved in it is told to the others. */
export class SharedOffers implements PeerOffers, MemberMemory {
  readonly #peers = new Map<string, PeerTexts>();
  readonly #said = new Map<string, string>();
  #current: ReadonlyMap<string, OfferingAgent> = new Map();
  #changed: (() => void) | undefined;
  #problem = "";

  constructor(private readonly options: SharedOffersOptions) {}

  get current(): ReadonlyMap<string, OfferingAgent> {
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
      // Else each text would be another one each time.
      const entry = { ...agent, seenMs: state === undefined ? seenMs : 0 };
      const entries = shards.get(part) ?? [];
      entries.push(JSON.stringify(entry));
      shards.set(part, entries);
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
      // Until it says that it is there: a server that died may leave parts.
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
    // Another version has said it, or nobody of ours.
    return [];
  }
}

function mergedOf(
  peers: Iterable<PeerTexts>,
  nowMs: number,
): ReadonlyMap<string, OfferingAgent> {
  const merged = new Map<string, OfferingAgent>();
  for (const { parts, goneMs } of peers) {
    for (const { state, ...agent } of [...parts.values()].flat()) {
      const known: OfferingAgent = {
        ...agent,
        seenMs: state === undefined ? agent.seenMs : goneMs ?? nowMs,
        state: goneMs === undefined ? state ?? "unready" : "unready",
      };
      const other = merged.get(agent.id);
      if (other === undefined || isBetter(known, other)) {
        merged.set(agent.id, known);
      }
    }
  }
  return merged;
}
