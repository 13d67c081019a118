/**
 * Which agents a server has, as texts that others read: an agent's name decides
 * in which of a few texts it stands, so that one that comes or goes changes only
 * one of them.
 *
 * @module
 */

import { fnv1a } from "../../proto/bytes/fnv1a.ts";
import {
  formatIdentifiers,
  type Identifiers,
  IdentifiersError,
  parseIdentifiers,
} from "../../proto/peer/identifiers.ts";
import { Tally } from "../../proto/sync/tally.ts";
import type { LinkPeer } from "../../proto/link/link.ts";

/** Texts among which a server's agents are divided. */
export const AGENT_SHARDS = 16;

/**
 * Longest text: annotations of one Kubernetes object have 256 KiB, a request of
 * etcd 1.5 MiB. Sixteen of them hold 30,000 agents with 100 bytes each.
 */
export const SHARD_MAX = 200 * 1024;

/** Agents of one text of another server that are looked at. */
export const SHARD_AGENTS_MAX = 20_000;

/** An agent that another server has. */
export interface ListedAgent {
  readonly agentId: string;
  readonly identifiers: Identifiers;
}

/** The content of one text, unparsed. */
export interface AgentShard {
  readonly entries: readonly unknown[];
  /** False: there are more agents than the text has. */
  readonly isWhole: boolean;
}

/** `agents-00` to `agents-15`. */
export function shardPart(shard: number): string {
  return `agents-${`${shard}`.padStart(2, "0")}`;
}

/** The agents that are linked here, and their texts. */
export class AgentShards {
  /** The number of an agent's links by shard and written entry. */
  readonly #shards = Array.from(
    { length: AGENT_SHARDS },
    () => new Tally<string>(),
  );
  readonly #changed = new Set<number>();

  /** @returns Whether there is something to be written. */
  add(peer: LinkPeer): boolean {
    const [shard, entry] = placeOf(peer);
    if (this.#shards[shard]!.add(entry) === 1) this.#changed.add(shard);
    return this.hasChanged;
  }

  /** The same; harmless when it is not there. */
  remove(peer: LinkPeer): boolean {
    const [shard, entry] = placeOf(peer);
    const links = this.#shards[shard]!;
    const wasThere = links.of(entry) > 0;
    if (links.add(entry, -1) === 0 && wasThere) this.#changed.add(shard);
    return this.hasChanged;
  }

  get hasChanged(): boolean {
    return this.#changed.size > 0;
  }

  /** The texts to write now, by part; without text: none. */
  *take(): Iterable<readonly [part: string, text: string | undefined]> {
    for (const shard of this.#changed) {
      yield [shardPart(shard), textOf([...this.#shards[shard]!.keys()])];
    }
    this.#changed.clear();
  }
}

/** Two links of an agent that says the same on both are written once. */
function placeOf({ agentId, identifiers }: LinkPeer): [number, string] {
  const entry = JSON.stringify([agentId, formatIdentifiers(identifiers)]);
  return [fnv1a(agentId) % AGENT_SHARDS, entry];
}

/** The first of `entries` that have `bytesMax` together, with a comma each. */
export function fittingIn(
  bytesMax: number,
  entries: readonly string[],
): readonly string[] {
  let bytes = 0;
  for (const [index, entry] of entries.entries()) {
    bytes += 1 + new TextEncoder().encode(entry).length;
    if (bytes > bytesMax) return entries.slice(0, index);
  }
  return entries;
}

/** @param entries In JSON. */
function textOf(entries: readonly string[]): string | undefined {
  if (entries.length === 0) return undefined;
  const fitting = fittingIn(SHARD_MAX - 64, entries);
  const isWhole = fitting.length === entries.length;
  return `{"isWhole":${isWhole},"agents":[${fitting.join(",")}]}`;
}

/** What another server has written; each entry is for {@linkcode parseAgent}. */
export function parseShard(text: string | undefined): AgentShard {
  if (text === undefined) return { entries: [], isWhole: true };
  if (text.length > 2 * SHARD_MAX) return { entries: [], isWhole: false };
  try {
    const said: unknown = JSON.parse(text);
    const { agents, isWhole }: { agents?: unknown; isWhole?: unknown } = Object(
      said,
    );
    const list = Array.isArray(agents) ? agents : [];
    return {
      entries: list.slice(0, SHARD_AGENTS_MAX),
      isWhole: isWhole === true,
    };
  } catch {
    return { entries: [], isWhole: false };
  }
}

/** `undefined`: it is no agent. */
export function parseAgent(entry: unknown): ListedAgent | undefined {
  if (!Array.isArray(entry)) return undefined;
  const [agentId, identifiers]: unknown[] = entry;
  if (typeof agentId !== "string" || typeof identifiers !== "string") {
    return undefined;
  }
  try {
    return { agentId, identifiers: parseIdentifiers(identifiers, "server") };
  } catch (error) {
    if (!(error instanceof IdentifiersError)) throw error;
    return undefined;
  }
}
