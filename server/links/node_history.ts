/**
 * Since when each node is linked to this server or not, why it left, and its
 * last address. Kept over restarts, so that `offline since` stays true.
 *
 * A file of this server alone, written seldom; nothing depends on it.
 *
 * @module
 */

import type { Tools } from "../../platform/program/tools.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import { SavedFile } from "../../platform/files/saved_file.ts";
import { clipped, kept } from "../../proto/peer/quoted.ts";
import type { AgentLink } from "../../proto/link/link.ts";
import { Tally } from "../../proto/sync/tally.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";

/** In the server's own state directory. */
export const HISTORY_FILE = "nodes-seen.jsonl";

/** Nodes that are remembered; the longest untouched gives way. */
export const HISTORY_MAX = 20_000;

/** Longest texts of a peer's that are kept. */
const NAME_LENGTH_MAX = 253;
const REASON_LENGTH_MAX = 200;

/** Delay of a write after a change, and the least time between two writes. */
const DELAY_MS = 3_000;
export const INTERVAL_MS = 30_000;

/**
 * Written this often even without a change: after a crash, the departure of
 * nodes that were linked is known to within this time.
 */
export const REWRITE_MS = 600_000;

/** The knowledge about a node's links here. */
export interface NodePast {
  /** Milliseconds since 1970: the begin of its present state. */
  readonly sinceMs: number;
  /** The same as text: thousands are shown at a time. */
  readonly since: string;
  readonly isLinked: boolean;
  /** Why its last link is gone; empty while it has one. */
  readonly reason: string;
  /** Of its newest link. */
  readonly address: string;
  readonly software: string;
}

/** Of one link. */
export interface LinkFacts {
  /** Of this process. */
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly sinceMs: number;
}

/** What `NodeHistory` needs. */
export interface NodeHistoryOptions extends Tools {
  /** Absent: the history is not kept. */
  readonly folder?: string | undefined;
  /** Workers have a file each: every agent is linked to all of them. */
  readonly worker?: number | undefined;
  /** Milliseconds since 1970. */
  readonly wallMs?: () => number;
}

/** See the module description. */
export class NodeHistory {
  readonly #wallMs: () => number;
  readonly #timers: Timers;
  readonly #file: SavedFile | undefined;
  /** The last touched is last. */
  readonly #nodes = new Map<string, NodePast>();
  readonly #links = new Tally<string>();
  readonly #linkFacts = new WeakMap<AgentLink, LinkFacts>();
  #numbered = 0;
  #isFrozen = false;
  #rewrite: Timer | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: NodeHistoryOptions) {
    const { folder, worker = 0, log, timers, wallMs = Date.now } = options;
    this.#wallMs = wallMs;
    this.#timers = timers;
    if (folder === undefined) return;
    this.#file = new SavedFile({
      path: `${folder}/${HISTORY_FILE}${worker === 0 ? "" : `.w${worker}`}`,
      format: "tunnel-server-nodes-seen",
      // The id of a server is new at each start, unless one is configured.
      owner: "a server",
      what: "when nodes were seen",
      unusable: "it is not known since when nodes are offline",
      unkept: "after a restart it will not be known since when nodes are gone",
      bytesMax: 16 * 1024 * 1024,
      delayMs: DELAY_MS,
      intervalMs: INTERVAL_MS,
      items: () => this.#items(),
      ...{ log, timers, now: wallMs },
    });
  }

  /** Reads the file of an earlier process; its linked nodes count as gone. */
  async load(): Promise<void> {
    const saved = await this.#file?.read();
    if (saved === undefined) return;
    const known = [...this.#nodes];
    this.#nodes.clear();
    for (const item of saved.items) {
      const [name, past] = readItem(item) ?? [];
      if (name === undefined || past === undefined) continue;
      this.#set(
        name,
        past.isLinked
          ? {
            ...past,
            isLinked: false,
            sinceMs: saved.savedMs,
            reason: "this server was restarted, and the node has not come back",
          }
          : past,
      );
    }
    for (const [name, past] of known) this.#set(name, past);
  }

  /** While a node is linked. */
  #rewriteLater(): void {
    if (this.#file === undefined || this.#rewrite !== undefined) return;
    this.#rewrite = this.#timers.after(REWRITE_MS, () => {
      this.#rewrite = undefined;
      if (this.#links.size === 0) return;
      this.#file?.changed();
      this.#rewriteLater();
    });
  }

  /** @param name Of the node, or of an agent that is none. */
  linked(name: string, link: AgentLink): void {
    const { remoteAddress: address, software } = link.peer;
    const id = `${++this.#numbered}`;
    this.#linkFacts.set(link, { id, sinceMs: this.#wallMs() });
    if (this.#isFrozen) return;
    const links = this.#links.add(name);
    this.#rewriteLater();
    const before = this.#nodes.get(name);
    const sinceMs = links > 1 && before !== undefined
      ? before.sinceMs
      : this.#wallMs();
    this.#set(name, {
      ...{ sinceMs, isLinked: true, reason: "", address },
      software: kept(software, NAME_LENGTH_MAX),
    });
    if (links === 1) this.#file?.changed();
  }

  unlinked(name: string, reason: string): void {
    if (this.#isFrozen) return;
    if (this.#links.add(name, -1) > 0) return;
    const before = this.#nodes.get(name);
    if (before === undefined) return;
    this.#set(name, {
      ...before,
      isLinked: false,
      sinceMs: this.#wallMs(),
      reason: clipped(reason, REASON_LENGTH_MAX),
    });
    this.#file?.changed();
  }

  /** For a link that stands. */
  linkFacts(link: AgentLink): LinkFacts | undefined {
    return this.#linkFacts.get(link);
  }

  of(name: string): NodePast | undefined {
    return this.#nodes.get(name);
  }

  /** For all remembered nodes. */
  get names(): Iterable<string> {
    return this.#nodes.keys();
  }

  /** The node is forgotten. */
  forget(name: string): void {
    if (this.#links.of(name) > 0) return;
    if (this.#nodes.delete(name)) this.#file?.changed();
  }

  /**
   * This server is ending, so the end of links now tells nothing about their
   * nodes. The file is written now and never again, because it may be a
   * successor's already.
   */
  freeze(): void {
    if (this.#isFrozen) return;
    this.#isFrozen = true;
    this.#rewrite?.cancel();
    // A server that does not even start has nothing to say.
    if (this.#nodes.size === 0) return;
    this.#file?.changed();
    const closing = this.#file?.close();
    if (closing === undefined) return;
    this.#closing = closing;
    unawaited("file", closing);
  }

  /** Settles when it is on disk, or cannot be. */
  async close(): Promise<void> {
    this.freeze();
    await this.#closing;
  }

  #set(name: string, past: Omit<NodePast, "since">): void {
    const key = kept(name, NAME_LENGTH_MAX);
    const since = new Date(past.sinceMs).toISOString();
    this.#nodes.delete(key);
    this.#nodes.set(key, { ...past, since });
    if (this.#nodes.size <= HISTORY_MAX) return;
    for (const [oldest, { isLinked }] of this.#nodes) {
      if (!isLinked) return void this.#nodes.delete(oldest);
    }
  }

  *#items(): Iterable<unknown> {
    for (const [name, past] of this.#nodes) {
      const { sinceMs, isLinked, reason, address, software } = past;
      yield [name, sinceMs, isLinked, reason, address, software];
    }
  }
}

function readItem(
  item: unknown,
): [string, Omit<NodePast, "since">] | undefined {
  if (!Array.isArray(item)) return undefined;
  const [name, sinceMs, isLinked, reason, address, software] = item;
  const isWhole = typeof name === "string" && typeof sinceMs === "number" &&
    Number.isFinite(new Date(sinceMs).getTime()) &&
    typeof isLinked === "boolean" && typeof reason === "string" &&
    typeof address === "string" && typeof software === "string";
  if (!isWhole) return undefined;
  return [name, { sinceMs, isLinked, reason, address, software }];
}
