/**
 * Follows all keys under a prefix: reads them, watches their changes, and reads
 * them again when etcd has compacted the revision, or is another cluster.
 *
 * It keeps no copy. The listener receives the whole, then changes in the order
 * in which they were made, then perhaps the whole again; every missed change is
 * made up for. While etcd is away the listener hears only that.
 *
 * Reading order: `start`, `#follow`, `#list`, `#watch`.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import type { EtcdClient, Listing } from "./client.ts";
import { EtcdError, etcdTrouble } from "./errors.ts";
import type { Entry } from "./keys.ts";
import {
  type Next,
  type Run,
  supervise,
} from "../../platform/time/supervise.ts";
import { type Change, Watch } from "./watch.ts";

/** Longest wait after failures. */
export const PREFIX_RETRY_CAP_MS = 10_000;

export interface FollowerOptions {
  readonly client: EtcdClient;
  readonly prefix: string;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** {@linkcode PREFIX_RETRY_CAP_MS} unless given. */
  readonly retryCapMs?: number;
  /** All keys; called even when there are none. */
  readonly onList: (entries: readonly Entry[]) => void;
  /** Changes of one moment; never empty. */
  readonly onChanges: (changes: readonly Change[]) => void;
  /** It is followed: after a list, and when a watch goes on after a problem. */
  readonly onFollowing: () => void;
  /** It is not followed; the next try comes in `retryMs`. */
  readonly onProblem: (error: EtcdError, retryMs: number) => void;
}

export class PrefixFollower {
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  /** The revision up to which all is known; `undefined`: none is, so list. */
  #known: { revision: bigint; readonly clusterId: string } | undefined;
  #watch: Watch | undefined;
  #hasProblem = false;
  /** The last watch was lost soon after it was opened. */
  #isLost = false;
  /** Changes that were said while all is being read. */
  readonly #recordings = new Set<Change[]>();

  constructor(private readonly options: FollowerOptions) {}

  start(): void {
    const { timers, random, retryCapMs, onProblem } = this.options;
    this.#running ??= supervise({
      timers,
      random,
      capMs: retryCapMs ?? PREFIX_RETRY_CAP_MS,
      signal: this.#stopping.signal,
      run: (run) => this.#follow(run),
      problemOf: etcdTrouble,
      onProblem: (error, retryMs) => {
        this.#hasProblem = true;
        onProblem(error, retryMs);
      },
    });
  }

  /** Ends watch and timers; the listener hears nothing afterwards. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#watch?.stop();
    await this.#running;
  }

  /**
   * Reads everything, apart from the watch, and waits until the watch had the
   * chance to say the same.
   *
   * @returns The present keys, newer changes of the watch included; `undefined`
   *   when there is nothing to compare, because all was read again or the
   *   follower was stopped.
   * @throws {EtcdError}
   */
  async readAll(): Promise<readonly Entry[] | undefined> {
    const recording: Change[] = [];
    const before = this.#known;
    this.#recordings.add(recording);
    try {
      const { client, prefix } = this.options;
      const { entries, revision } = await client.list(prefix);
      await this.#watch?.reached(revision);
      if (this.#known !== before || this.#stopping.signal.aborted) {
        return undefined;
      }
      return withChanges(entries, recording, revision);
    } finally {
      this.#recordings.delete(recording);
    }
  }

  async #follow(run: Run): Promise<Next> {
    this.#known ??= await this.#list();
    if (this.#stopping.signal.aborted) return "done";
    await this.#watchFrom(this.#known, run);
    return "again";
  }

  async #list(): Promise<{ revision: bigint; readonly clusterId: string }> {
    const { client, prefix, onList } = this.options;
    const { entries, revision, clusterId }: Listing = await client.list(prefix);
    if (!this.#stopping.signal.aborted) {
      onList(entries);
      this.#follows();
    }
    return { revision, clusterId };
  }

  /** One watch, to its end. What it says moves `known` on. */
  async #watchFrom(
    known: { revision: bigint; readonly clusterId: string },
    run: Run,
  ): Promise<void> {
    const { client, prefix, timers } = this.options;
    this.#watch = new Watch({
      client,
      prefix,
      timers,
      clusterId: known.clusterId,
      knownRevision: known.revision,
      onOpen: () => {
        run.opened();
        if (this.#hasProblem) this.#follows();
      },
      onChanges: (changes, revision) => {
        if (revision > known.revision) known.revision = revision;
        if (changes.length === 0) return;
        for (const recording of this.#recordings) recording.push(...changes);
        this.options.onChanges(changes);
      },
    });
    const end = await this.#watch.ended;
    this.#watch = undefined;
    if (end.kind === "broken") throw end.error;
    // A compacted revision is not a failure, unless it happens all the time.
    this.#known = undefined;
    const wasLost = this.#isLost;
    this.#isLost = run.isYoung;
    if (wasLost && this.#isLost) throw end.error;
  }

  #follows(): void {
    this.#hasProblem = false;
    this.options.onFollowing();
  }
}

/** A list, and the changes after it. */
function withChanges(
  entries: readonly Entry[],
  changes: readonly Change[],
  revision: bigint,
): readonly Entry[] {
  const byKey = new Map(entries.map((entry) => [entry.key, entry]));
  for (const { value, ...change } of changes) {
    if (change.modRevision <= revision) continue;
    if (value === undefined) byKey.delete(change.key);
    else byKey.set(change.key, { ...change, value });
  }
  return [...byKey.values()];
}
