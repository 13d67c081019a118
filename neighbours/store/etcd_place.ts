/**
 * Records in etcd: a key each, `PREFIX` and the record's key. A change is one
 * transaction, compared with the revisions of what it read.
 *
 * @module
 */

import type { EtcdClient } from "../etcd/client.ts";
import { EtcdError, isAboutMember } from "../etcd/errors.ts";
import {
  type Compare,
  Compare_CompareResult,
  Compare_CompareTarget,
} from "../etcd/etcd_messages.ts";
import { bytesOf, type Entry } from "../etcd/keys.ts";
import { PrefixFollower } from "../etcd/prefix_follower.ts";
import type { Change } from "../etcd/watch.ts";
import { StatusCode } from "../../proto/grpc/status.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import {
  type CommitOutcome,
  NO_VERSION,
  type Place,
  type PlaceEvents,
  type RecordChange,
  type VersionedRecord,
} from "./transaction.ts";
import { FOLLOWED_FOLDERS, type FollowedFolder } from "./store.ts";
import { inWords, StoreAwayError, StoreError } from "./store_error.ts";
import { readInstanceId } from "../../proto/peer/peer_identity.ts";
import { EtcdLease } from "../etcd/etcd_lease.ts";
import {
  type EphemeralOptions,
  type EphemeralPlace,
  PART_NAME,
  type PlaceSights,
  type Sight,
} from "./ephemerals.ts";

/** etcd accepts requests of 1.5 MiB by default. */
const RECORD_BYTES_MAX = 1_000_000;

/**
 * Longest wait after failures: a node revoked meanwhile stays linked as long.
 */
const RETRY_CAP_MS = 2_000;

const DECODER = new TextDecoder();

/** What it needs. */
export interface EtcdPlaceOptions {
  readonly client: EtcdClient;
  /** Of every key; ends with a slash. */
  readonly prefix: string;
  /** The cluster's name in sentences. */
  readonly name: string;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** See the module description. */
export class EtcdPlace implements Place {
  readonly noun = "the state in etcd";
  readonly recordBytesMax = RECORD_BYTES_MAX;
  #followers: readonly PrefixFollower[] = [];

  constructor(private readonly options: EtcdPlaceOptions) {}

  get name(): string {
    return this.options.name;
  }

  where(key: string): string {
    return `${this.options.prefix}${key} in etcd`;
  }

  async get(key: string): Promise<VersionedRecord | undefined> {
    const { client, prefix } = this.options;
    const entry = await inWords(worded, client.get(prefix + key));
    return entry && recordOf(entry);
  }

  async list(
    folder: string,
    prefix: string,
  ): Promise<ReadonlyMap<string, VersionedRecord>> {
    const { client, prefix: root } = this.options;
    const begin = `${root}${folder}/`;
    const { entries } = await inWords(worded, client.list(begin + prefix));
    return new Map(entries.map((entry) => [
      entry.key.slice(begin.length),
      recordOf(entry),
    ]));
  }

  async commit(
    writes: readonly RecordChange[],
    guards: readonly Pick<RecordChange, "key" | "version">[],
  ): Promise<CommitOutcome> {
    const { client, prefix } = this.options;
    const key = (record: Pick<RecordChange, "key">) =>
      bytesOf(prefix + record.key);
    const compare = [...writes, ...guards].map((record): Compare => ({
      key: key(record),
      result: Compare_CompareResult.EQUAL,
      target: Compare_CompareTarget.MOD,
      modRevision: record.version,
    }));
    const success = writes.map((write) =>
      write.text === undefined
        ? { requestDeleteRange: { key: key(write) } }
        : { requestPut: { key: key(write), value: bytesOf(write.text) } }
    );
    try {
      const request = { compare, success };
      const answer = await client.txn(`change ${prefix}`, request);
      if (!answer.succeeded) return { kind: "conflict" };
      const version = answer.header?.revision ?? NO_VERSION;
      return { kind: "done", versions: writes.map(() => version) };
    } catch (error) {
      if (!(error instanceof EtcdError) || !isAboutMember(error.code)) {
        throw worded(error);
      }
      return await this.#settle(writes, error);
    }
  }

  follow(events: PlaceEvents): void {
    const { client, prefix, timers, random } = this.options;
    const lost = new Set<FollowedFolder>(FOLLOWED_FOLDERS);
    this.#followers = FOLLOWED_FOLDERS.map((folder) =>
      new PrefixFollower({
        ...{ client, timers, random, retryCapMs: RETRY_CAP_MS },
        prefix: `${prefix}${folder}/`,
        onList: (entries) =>
          events.listed(folder, entries.map((entry) => this.#changeOf(entry))),
        onChanges: (changes) =>
          events.changed(changes.map((change) => this.#changeOf(change))),
        onFollowing: () => {
          lost.delete(folder);
          if (lost.size === 0) events.following();
        },
        onProblem: (error) => {
          lost.add(folder);
          events.problem(error.message, isLasting(error));
        },
      })
    );
    for (const follower of this.#followers) follower.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#followers.map((follower) => follower.stop()));
  }

  /**
   * The answer is lost. What is there now says whether it was done: all or
   * nothing was.
   *
   * @throws {StoreAwayError} When that cannot be seen either.
   */
  async #settle(
    writes: readonly RecordChange[],
    error: EtcdError,
  ): Promise<CommitOutcome> {
    const versions: string[] = [];
    for (const { key, text, version } of writes) {
      let now: VersionedRecord | undefined;
      try {
        now = await this.get(key);
      } catch {
        throw new StoreAwayError(
          `${error.message}; whether the change was made is not known`,
          { cause: error, isOpen: true },
        );
      }
      if (now?.text !== text) return { kind: "conflict" };
      versions.push(now?.version ?? version);
    }
    return { kind: "done", versions };
  }

  #changeOf({ key, value, modRevision }: Change): RecordChange {
    return {
      key: key.slice(this.options.prefix.length),
      text: value && DECODER.decode(value),
      version: `${modRevision}`,
    };
  }
}

function isLasting({ code }: EtcdError): boolean {
  return code === StatusCode.PERMISSION_DENIED ||
    code === StatusCode.UNAUTHENTICATED || code === StatusCode.INVALID_ARGUMENT;
}

function recordOf({ value, modRevision }: Entry): VersionedRecord {
  return { text: DECODER.decode(value), version: `${modRevision}` };
}

/** @returns What to throw. */
function worded(error: unknown): unknown {
  if (!(error instanceof EtcdError)) return error;
  const { message } = error;
  return isAboutMember(error.code)
    ? new StoreAwayError(message, { cause: error })
    : new StoreError(message, undefined, { cause: error });
}

// Ephemeral texts in etcd: keys that are bound to a lease, which expires in
// etcd without renewal. Keys are `ROOT SERVER-ID/INSTANCE-ID/PART`.

/** What it needs from outside. */
export interface EtcdEphemeralsOptions
  extends EphemeralOptions, Omit<EtcdPlaceOptions, "name"> {
  readonly serverId: string;
}

/** See the module description. `prefix` is of every key; it ends with a slash. */
export class EtcdEphemerals implements EphemeralPlace {
  readonly isLeased = true;
  readonly #root: string;
  #follower: PrefixFollower | undefined;
  #lease: EtcdLease | undefined;
  #held: string | undefined;

  constructor(private readonly options: EtcdEphemeralsOptions) {
    this.#root = `${options.prefix}members/`;
  }

  get isReady(): boolean {
    return this.#held !== undefined;
  }

  follow(sights: PlaceSights): void {
    const { client, timers, random, timeoutMs } = this.options;
    this.#follower = new PrefixFollower({
      ...{ client, timers, random, prefix: this.#root },
      onList: (entries) =>
        sights.listed(entries.flatMap((entry) => this.#sightOf(entry))),
      onChanges: (changes) =>
        sights.changed(changes.flatMap((change) => this.#sightOf(change))),
      onFollowing: () => sights.state("followed"),
      onProblem: ({ message }) => sights.state("followed", message),
    });
    this.#lease = new EtcdLease({
      ...{ client, timers, random },
      ttlSeconds: Math.max(1, Math.round(timeoutMs / 1_000)),
      write: () => Promise.resolve(),
      onHeld: (lease) => {
        this.#held = lease;
        sights.state("held");
        sights.rewrite();
      },
      onLost: () => this.#held = undefined,
      onRenewed: () => sights.state("held"),
      onProblem: ({ message }) => sights.state("held", message),
    });
    this.#follower.start();
    this.#lease.start();
  }

  write(part: string, text: string | undefined): Promise<void> {
    const { client, serverId, instanceId } = this.options;
    const owner = `${encodeURIComponent(serverId)}/${instanceId}`;
    const key = `${this.#root}${owner}/${part}`;
    return inWords(
      worded,
      text === undefined
        ? client.delete(key)
        : client.put(key, bytesOf(text), this.#held),
    );
  }

  /** etcd does. */
  remove(): Promise<void> {
    return Promise.resolve();
  }

  async stop(): Promise<void> {
    // When the lease cannot be ended now it ends by itself.
    const ended = this.#lease && inWords(worded, this.#lease.stop());
    await Promise.all([this.#follower?.stop(), ended]);
  }

  /** The owner and part of a key; none when it is not ours. */
  #sightOf({ key, value, modRevision }: Change): Sight[] {
    const [, id, part, ...more] = key.slice(this.#root.length).split("/");
    const instanceId = readInstanceId(id);
    const isPart = instanceId !== undefined && part !== undefined &&
      PART_NAME.test(part) && more.length === 0;
    if (!isPart) return [];
    const text = value && DECODER.decode(value);
    return [{ instanceId, part, text, version: `${modRevision}` }];
  }
}
