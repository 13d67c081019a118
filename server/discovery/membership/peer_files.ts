/**
 * The agents of other servers that share a state, out of what they save of them
 * (`member_memory.ts`, `member_records.ts`).
 *
 * A server that is there says so every few seconds, and whose word stands still
 * has gone. Only by our own clock: that of another machine may
 * be wrong. The files are looked at and not watched: news of a directory that
 * machines share (NFS) does not come.
 *
 * @module
 */

import type { Timer, Timers } from "../../../proto/sync/clock.ts";
import { unawaited } from "../../../platform/errors/internal_errors.ts";
import type { RememberedAgent, SharedMemory } from "./member_memory.ts";
import { isBetter, type PeerAgent, type PeerOffers } from "./peer_offers.ts";

/** How often a server touches its own. */
export const RENEW_MS = 5_000;

/** Three of those and a slow disk: whoever misses them is gone. */
export const GONE_MS = 20_000;

/** Servers that are remembered; more do not share a directory. */
const PEERS_MAX = 32;

/** What another server has saved. */
interface PeerFile {
  readonly agents: readonly RememberedAgent[];
  /** What changes with its content. */
  readonly stamp: string;
  /** When it says that it was there last, in milliseconds since 1970. */
  readonly aliveMs: number;
  /** When it said so, by our own clock. */
  readonly heardMs: number;
  readonly isGone: boolean;
}

/** See the module description. */
export class PeerFiles implements PeerOffers {
  #peers: ReadonlyMap<string, PeerFile> = new Map();
  #current: ReadonlyMap<string, PeerAgent> = new Map();
  #changed: (() => void) | undefined;
  #timer: Timer | undefined;
  #looking: Promise<void> = Promise.resolve();
  #renewedMs = -Infinity;

  constructor(
    private readonly files: SharedMemory,
    private readonly timers: Timers,
  ) {}

  get current(): ReadonlyMap<string, PeerAgent> {
    return this.#current;
  }

  start(changed: () => void): void {
    this.#changed = changed;
    this.#lookSoon(0);
  }

  async stop(): Promise<void> {
    this.#changed = undefined;
    this.#timer?.cancel();
    await this.#looking;
  }

  #lookSoon(ms: number): void {
    if (this.#changed === undefined) return;
    this.#timer = this.timers.after(ms, () => {
      this.#looking = this.#look().finally(() =>
        this.#lookSoon(this.files.lookMs)
      );
      unawaited("catalog", this.#looking);
    });
  }

  async #look(): Promise<void> {
    await this.#renew();
    const before = this.#peers;
    const paths = new Set([
      ...before.keys(),
      ...await this.files.files() ?? [],
    ]);
    const now = new Map<string, PeerFile>();
    for (const path of paths) {
      if (path === this.files.path) continue;
      const peer = await this.#lookAt(path, before.get(path));
      if (peer !== undefined) now.set(path, peer);
      if (now.size >= PEERS_MAX) break;
    }
    this.#peers = now;
    const isSame = before.size === now.size &&
      [...now].every(([path, { agents, isGone }]) => {
        const old = before.get(path);
        return old?.agents === agents && old.isGone === isGone;
      });
    if (isSame || this.#changed === undefined) return;
    this.#current = mergedAgents(now.values());
    this.#changed();
  }

  /**
   * A file that cannot be read, or is there no more, says as much as it did: for
   * services to be removed takes more than a disk in trouble.
   */
  async #lookAt(
    path: string,
    before: PeerFile | undefined,
  ): Promise<PeerFile | undefined> {
    const saved = await this.files.look(path);
    const stamp = saved?.stamp ?? before?.stamp;
    if (stamp === undefined) return undefined;
    const agents = before?.stamp === stamp
      ? before.agents
      : await this.files.read(path) ?? before?.agents ?? [];
    const aliveMs = saved?.aliveMs ?? before?.aliveMs ?? 0;
    const nowMs = this.timers.now();
    const heardMs = aliveMs === before?.aliveMs
      ? before.heardMs
      // One that is seen for the first time is believed, if it can be true.
      : nowMs - (before === undefined ? Math.max(0, Date.now() - aliveMs) : 0);
    const isGone = nowMs - heardMs >= GONE_MS;
    return { agents, stamp, aliveMs, heardMs, isGone };
  }

  async #renew(): Promise<void> {
    const nowMs = this.timers.now();
    if (nowMs - this.#renewedMs < RENEW_MS) return;
    this.#renewedMs = nowMs;
    await this.files.renew();
  }
}

function mergedAgents(
  peers: Iterable<PeerFile>,
): ReadonlyMap<string, PeerAgent> {
  const merged = new Map<string, PeerAgent>();
  for (const { agents, isGone, aliveMs } of peers) {
    for (const { state, ...agent } of agents) {
      // Who was linked to a server that is gone was so until its last breath.
      const seenMs = state === undefined ? agent.seenMs : aliveMs;
      const known: PeerAgent = {
        ...agent,
        seenMs,
        state: isGone || state === undefined ? "unready" : state,
      };
      const other = merged.get(agent.id);
      if (other === undefined || isBetter(known, other)) {
        merged.set(agent.id, known);
      }
    }
  }
  return merged;
}
