/**
 * Ephemeral texts in etcd: keys that are bound to a lease, which etcd ends when
 * nobody renews it. Keys are `ROOT SERVER-ID/INSTANCE-ID/PART`.
 *
 * @module
 */

import { readInstanceId } from "../../proto/peer/instance_id.ts";
import { EtcdLease } from "../etcd/etcd_lease.ts";
import { bytesOf } from "../etcd/keys.ts";
import { PrefixFollower } from "../etcd/prefix_follower.ts";
import { type EtcdPlaceOptions, placeError } from "./etcd_place.ts";
import {
  type EphemeralOptions,
  type EphemeralPlace,
  PART_NAME,
  type PlaceSights,
  type Sight,
} from "./ephemerals.ts";

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
        sights.changed(
          changes.flatMap((change) =>
            this.#sightOf(change.kind === "put" ? change.entry : change)
          ),
        ),
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
    return placeError(
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
    const ended = this.#lease && placeError(this.#lease.stop());
    await Promise.all([this.#follower?.stop(), ended]);
  }

  /** Of a key; none when it is nothing of ours. */
  #sightOf(
    { key, value, modRevision }: {
      readonly key: string;
      readonly value?: Uint8Array;
      readonly modRevision: bigint;
    },
  ): Sight[] {
    const [, id, part, ...more] = key.slice(this.#root.length).split("/");
    const instanceId = readInstanceId(id);
    const isPart = instanceId !== undefined && part !== undefined &&
      PART_NAME.test(part) && more.length === 0;
    if (!isPart) return [];
    const text = value && new TextDecoder().decode(value);
    return [{ instanceId, part, text, version: `${modRevision}` }];
  }
}
