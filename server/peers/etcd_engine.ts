/**
 * Servers that meet in etcd: what each publishes is bound to a lease, which
 * etcd ends when nobody renews it. Keys are
 * `PREFIX members/SERVER-ID/INSTANCE-ID/PART`, where PART is `member` or a shard
 * of agents.
 *
 * @module
 */

import { atMost } from "../../platform/time/deadline.ts";
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
import { PartWriter } from "./part_writer.ts";

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
  readonly #writer: PartWriter;
  /** Keys that there are. */
  #seen = new Map<string, PartChange>();
  #events: EngineEvents | undefined;
  #held: string | undefined;
  #isFollowed = false;
  /** False: what is published may end while its lease is not renewed. */
  #isRenewed = true;

  constructor(options: EtcdEngineOptions) {
    const { client, timers, random, timeoutMs } = options;
    this.#options = options;
    this.#root = `${options.prefix}members/`;
    this.#writer = new PartWriter({
      timers,
      isReady: () => this.#held !== undefined,
      write: (part, text) => this.#write(part, text),
      problemOf: (error) => {
        if (error instanceof EtcdError) return error.message;
        throw error;
      },
      onProblem: (message) => this.#events?.problem(message),
    });
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
        this.#renewed();
        this.#writer.resume();
      },
      onLost: () => this.#held = undefined,
      onRenewed: () => this.#renewed(),
      onProblem: (error) => {
        this.#isRenewed = false;
        this.#events?.problem(error.message);
      },
    });
  }

  start(events: EngineEvents): void {
    this.#events = events;
    this.#follower.start();
  }

  publish(part: string, text: string | undefined): void {
    this.#writer.publish(part, text);
    // The lease is wanted once there is something to be bound to it.
    this.#lease.start();
  }

  async stop(): Promise<void> {
    const ended = Promise.all([
      this.#writer.stop(),
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
    for (const [part, text] of [...this.#writer.texts]) {
      await client.put(this.#keyOf(part), bytesOf(text), lease);
      if (this.#writer.texts.get(part) === text) this.#writer.mark(part, true);
    }
  }

  async #write(part: string, text: string | undefined): Promise<void> {
    const { client } = this.#options;
    const key = this.#keyOf(part);
    if (text === undefined) await client.delete(key);
    else await client.put(key, bytesOf(text), this.#held);
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
      // Somebody has deleted what this server says: it says so again.
      const isLost = part.text === undefined &&
        part.instanceId === this.#options.instanceId &&
        this.#writer.texts.has(part.part);
      if (isLost) this.#writer.mark(part.part, false);
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

  #renewed(): void {
    if (this.#isRenewed) return;
    this.#isRenewed = true;
    this.#works();
  }

  #works(): void {
    if (this.#isFollowed && this.#isRenewed) this.#events?.following();
  }
}

/** Of a key, which is nothing of ours without a part. */
type KeyChange = [key: string, part: PartChange | undefined];
