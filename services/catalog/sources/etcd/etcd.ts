/**
 * Services and endpoints from etcd: what keys say, by one of two layouts.
 *
 * A key whose value cannot be used is refused alone; what it said before stays
 * until it is deleted. When an endpoints key is deleted, its service stays, and
 * the reverse.
 *
 * Reading order: `start`, `#replaced`, `#change`.
 *
 * @module
 */

import type { Tools } from "../../../../platform/program/tools.ts";
import type { EtcdClient } from "../../../../neighbours/etcd/client.ts";
import { EtcdError } from "../../../../neighbours/etcd/errors.ts";
import type { Entry } from "../../../../neighbours/etcd/keys.ts";
import { PrefixFollower } from "../../../../neighbours/etcd/prefix_follower.ts";
import type { Change } from "../../../../neighbours/etcd/watch.ts";
import type { CatalogPart, Sink, Source } from "../../model/source.ts";
import { EtcdEntries, type EtcdLayout } from "./etcd_entries.ts";

export interface EtcdSourceOptions extends Tools {
  /** The source's own; closed with it. */
  readonly client: EtcdClient;
  readonly layout: EtcdLayout;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

export class EtcdSource implements Source {
  readonly name: string;
  readonly #follower: PrefixFollower;
  readonly #entries: EtcdEntries;
  #sink: Sink | undefined;
  #isStopped = false;

  constructor(private readonly options: EtcdSourceOptions) {
    const { client, layout, timers, random } = options;
    this.name = layout.sourceName;
    this.#entries = new EtcdEntries(
      layout,
      (problem) => this.#sink?.refused(problem),
    );
    this.#follower = new PrefixFollower({
      client,
      prefix: layout.prefix,
      timers,
      random,
      onList: (entries) => this.#sink?.set(this.#replaced(entries)),
      onChanges: (changes) => this.#change(changes),
      onFollowing: () => this.#sink?.synced(),
      onProblem: ({ message }, retryMs) => this.#sink?.failed(message, retryMs),
    });
  }

  start(sink: Sink): void {
    this.#sink = sink;
    this.#follower.start();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    const stopped = this.#follower.stop();
    this.options.client[Symbol.dispose]();
    await stopped;
  }

  async reconcile(): Promise<void> {
    try {
      const entries = await this.#follower.readAll();
      if (entries === undefined || this.#isStopped) return;
      this.#sink?.repair(this.#replaced(entries));
      this.#sink?.synced();
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      // The watch lives or says itself that it does not.
      if (!this.#isStopped) {
        this.options.log.warn(`${error.message}; nothing was compared`, {
          code: "TUN701",
        });
      }
    }
  }

  #replaced(entries: readonly Entry[]): CatalogPart {
    this.#entries.replace(entries);
    const { services, endpoints } = this.#entries;
    return { services, endpoints };
  }

  #change(changes: readonly Change[]): void {
    for (const { value, ...change } of changes) {
      if (value === undefined) this.#entries.remove(change.key);
      else this.#entries.put({ ...change, value });
    }
    this.#sink!.change(this.#entries.takeChange());
  }
}
