/**
 * Servers that meet in etcd: what each publishes is bound to a lease, which
 * etcd ends when nobody renews it. Keys are
 * `PREFIX members/SERVER-ID/INSTANCE-ID/PART`, where PART is `member` or a shard
 * of agents.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import { atMost } from "../../platform/time/deadline.ts";
import { pause } from "../../platform/time/pause.ts";
import type { EtcdClient } from "../../neighbours/etcd/client.ts";
import { EtcdError } from "../../neighbours/etcd/errors.ts";
import { EtcdLease } from "../../neighbours/etcd/etcd_lease.ts";
import { bytesOf, type Entry } from "../../neighbours/etcd/keys.ts";
import { PrefixFollower } from "../../neighbours/etcd/prefix_follower.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import { readInstanceId } from "../../proto/peer/instance_id.ts";
import {
  type EngineEvents,
  type MemberEngine,
  PART_NAME,
  type PartChange,
} from "./member_engine.ts";

/** After a write that failed, the next one comes then. */
const REWRITE_MS = 1_000;

/** How long the end of a server may wait for the end of its lease. */
const STOP_MS = 2_000;

/** What `EtcdEngine` needs from outside. */
export interface EtcdEngineOptions {
  readonly client: EtcdClient;
  /** Of every key of the state; ends with a slash. */
  readonly prefix: string;
  readonly serverId: string;
  readonly instanceId: string;
  /** A server that says nothing for so long is gone. */
  readonly timeoutMs: number;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

export class EtcdEngine implements MemberEngine {
  readonly #options: EtcdEngineOptions;
  readonly #root: string;
  readonly #follower: PrefixFollower;
  readonly #lease: EtcdLease;
  readonly #stopping = new AbortController();
  /** What this server publishes, and what of it differs from what is there. */
  readonly #own = new Map<string, string>();
  readonly #unwritten = new Set<string>();
  /** Keys that there are. */
  #seen = new Map<string, PartChange>();
  #events: EngineEvents | undefined;
  #held: string | undefined;
  #isFollowed = false;
  #isWriting = false;

  constructor(options: EtcdEngineOptions) {
    const { client, timers, random, timeoutMs } = options;
    this.#options = options;
    this.#root = `${options.prefix}members/`;
    const common = { client, timers, random };
    this.#follower = new PrefixFollower({
      ...common,
      prefix: this.#root,
      onList: (entries) => this.#list(entries),
      onChanges: (changes) =>
        this.#report(
          changes.map((change) =>
            change.kind === "put"
              ? this.#partOf(change.entry.key, change.entry.value)
              : this.#partOf(change.key, undefined)
          ),
        ),
      onFollowing: () => {
        this.#isFollowed = true;
        this.#works();
      },
      onProblem: (error) => {
        this.#isFollowed = false;
        this.#events?.problem(error.message);
      },
    });
    this.#lease = new EtcdLease({
      ...common,
      ttlSeconds: Math.max(1, Math.round(timeoutMs / 1_000)),
      write: (lease) => this.#writeAll(lease),
      onHeld: (lease) => {
        this.#held = lease;
        this.#works();
        this.#writeSoon();
      },
      onLost: () => this.#held = undefined,
      onProblem: (error) => this.#events?.problem(error.message),
    });
  }

  start(events: EngineEvents): void {
    this.#events = events;
    this.#follower.start();
  }

  publish(part: string, text: string | undefined): void {
    if (text === undefined) this.#own.delete(part);
    else this.#own.set(part, text);
    this.#unwritten.add(part);
    // The lease is wanted once there is something to be bound to it.
    this.#lease.start();
    this.#writeSoon();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    const ended = Promise.all([
      this.#follower.stop(),
      // When it cannot be ended now it ends by itself.
      this.#lease.stop().catch((error: unknown) => {
        if (!(error instanceof EtcdError)) throw error;
      }),
    ]);
    await atMost(this.#options.timers, STOP_MS, ended);
  }

  // --- What this server publishes ----------------------------------------------

  async #writeAll(lease: string): Promise<void> {
    const { client } = this.#options;
    // One by one: together they may be more than a request of etcd may have.
    for (const [part, text] of this.#own) {
      this.#unwritten.delete(part);
      await client.put(this.#keyOf(part), bytesOf(text), lease);
    }
  }

  #writeSoon(): void {
    if (this.#isWriting || this.#held === undefined) return;
    if (this.#unwritten.size === 0) return;
    this.#isWriting = true;
    unawaited(
      "task",
      this.#write().finally(() => {
        this.#isWriting = false;
        this.#writeSoon();
      }),
    );
  }

  async #write(): Promise<void> {
    const { client, timers } = this.#options;
    const { signal } = this.#stopping;
    const [part] = this.#unwritten;
    if (part === undefined || this.#held === undefined) return;
    this.#unwritten.delete(part);
    const text = this.#own.get(part);
    const key = this.#keyOf(part);
    try {
      if (text === undefined) await client.delete(key);
      else await client.put(key, bytesOf(text), this.#held);
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      this.#unwritten.add(part);
      if (signal.aborted) return void (this.#held = undefined);
      this.#events?.problem(error.message);
      await pause(timers, REWRITE_MS, signal);
      if (signal.aborted) this.#held = undefined;
    }
  }

  #keyOf(part: string): string {
    const { serverId, instanceId } = this.#options;
    return `${this.#root}${encodeURIComponent(serverId)}/${instanceId}/${part}`;
  }

  // --- What all publish --------------------------------------------------------

  #list(entries: readonly Entry[]): void {
    const changes = entries.map(({ key, value }) => this.#partOf(key, value));
    const now = new Set(entries.map(({ key }) => key));
    for (const [key, part] of this.#seen) {
      if (!now.has(key)) changes.push([key, { ...part, text: undefined }]);
    }
    this.#report(changes);
  }

  #report(changes: readonly KeyChange[]): void {
    const parts: PartChange[] = [];
    for (const [key, part] of changes) {
      if (part === undefined) continue;
      if (part.text === undefined) this.#seen.delete(key);
      else this.#seen.set(key, { ...part, text: "" });
      parts.push(part);
    }
    if (parts.length > 0) this.#events?.changed(parts);
  }

  #partOf(key: string, value: Uint8Array | undefined): KeyChange {
    const [, id, part, ...more] = key.slice(this.#root.length).split("/");
    const instanceId = readInstanceId(id);
    const isPart = instanceId !== undefined && part !== undefined &&
      PART_NAME.test(part) && more.length === 0;
    if (!isPart) return [key, undefined];
    const text = value && new TextDecoder().decode(value);
    return [key, { instanceId, part, text }];
  }

  #works(): void {
    if (this.#isFollowed) this.#events?.following();
  }
}

/** Of a key, which is nothing of ours without a part. */
type KeyChange = [key: string, part: PartChange | undefined];
