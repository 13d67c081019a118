/**
 * What the cases of `etcd.ts` share: a workspace, clusters, a client's copy of
 * what is in one, and waiting.
 *
 * @module
 */

import { SourceEntries } from "../../services/catalog/changes.ts";
import type { Sink } from "../../services/catalog/model/source.ts";
import { EtcdSource } from "../../services/catalog/sources/etcd/etcd.ts";
import { tunnelLayout } from "../../services/catalog/sources/etcd/etcd_tunnel_layout.ts";
import type { EtcdClient } from "../../neighbours/etcd/client.ts";
import {
  connectEtcd,
  type EtcdOptions,
} from "../../neighbours/etcd/connect.ts";
import { PrefixFollower } from "../../neighbours/etcd/prefix_follower.ts";
import type { Log } from "../../platform/log/log.ts";
import type { Cases } from "./case_runner.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type { EtcdCluster } from "../peers/etcd_cluster.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import { recordedLog } from "../../tests/support/watch/recorded_log.ts";
import { eventually } from "./kube_case.ts";

/** What a case gets. */
export interface EtcdContext {
  readonly workspace: Workspace;
  /** One member, without TLS and users, for cases that do it no harm. */
  readonly cluster: EtcdCluster;
}

/** By sentence. */
export type EtcdCases = Cases<EtcdContext>;

const DECODER = new TextDecoder();

/** Our client of a cluster. */
export function clientOf(
  { urls }: { readonly urls: readonly string[] },
  more: Partial<EtcdOptions> = {},
): EtcdClient {
  return connectEtcd({ servers: urls, tls: {}, ...more }, systemTimers);
}

/** All keys below a prefix, as they are said to a follower. */
export class FollowedCopy implements AsyncDisposable {
  readonly keys = new Map<string, string>();
  /** `list`, `following`, `problem: …`, and a word for each change. */
  readonly said: string[] = [];
  readonly follower: PrefixFollower;

  constructor(private readonly client: EtcdClient, prefix: string) {
    this.follower = new PrefixFollower({
      client,
      prefix,
      timers: systemTimers,
      random: Math.random,
      onList: (entries) => {
        this.keys.clear();
        for (const { key, value } of entries) {
          this.keys.set(key, DECODER.decode(value));
        }
        this.said.push("list");
      },
      onChanges: (changes) => {
        for (const { key, value } of changes) {
          if (value === undefined) {
            this.keys.delete(key);
            this.said.push(`-${key}`);
            continue;
          }
          this.keys.set(key, DECODER.decode(value));
          this.said.push(`${key}=${DECODER.decode(value)}`);
        }
      },
      onFollowing: () => this.said.push("following"),
      onProblem: ({ message }) => this.said.push(`problem: ${message}`),
    });
    this.follower.start();
  }

  get lists(): number {
    return this.said.filter((word) => word === "list").length;
  }

  /** What is there, in one text that can be compared. */
  get text(): string {
    return [...this.keys].map(([key, value]) => `${key}=${value}`).sort()
      .join("\n");
  }

  async until(word: string): Promise<void> {
    await eventually(
      `"${word}" is said; so far ${this.said.slice(-5)}`,
      () => this.said.some((said) => said.includes(word)),
    );
  }

  /** The copy is what the gateway says there is. */
  async equals(cluster: EtcdCluster, prefix: string): Promise<void> {
    const there = async () =>
      (await cluster.keys(prefix)).map(({ key, value }) => `${key}=${value}`)
        .sort().join("\n");
    await eventually(
      "the copy is as the original",
      async () => this.text === await there(),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const stopped = this.follower.stop();
    this.client[Symbol.dispose]();
    await stopped;
  }
}

/** The source of a catalog on a cluster, and what it has said. */
export class FollowedSource implements AsyncDisposable {
  readonly entries = new SourceEntries();
  readonly lines: string[];
  /** Why it is not followed now. */
  problem: string | undefined = "not yet";
  drift = 0;
  readonly source: EtcdSource;

  constructor(client: EtcdClient) {
    const { log, lines } = recordedLog();
    this.lines = lines;
    this.source = new EtcdSource({
      client,
      layout: tunnelLayout(),
      timers: systemTimers,
      random: Math.random,
      log: log as Log,
    });
    const sink: Sink = {
      set: (part) => void this.entries.set(part),
      change: (change) => void this.entries.change(change),
      repair: (part) => {
        this.drift += this.entries.set(part).count;
      },
      refused: (problem) => void this.lines.push(problem),
      synced: () => this.problem = undefined,
      failed: (problem) => this.problem = problem,
    };
    this.source.start(sink);
  }

  async synced(): Promise<void> {
    await eventually("it is followed", () => this.problem === undefined);
  }

  /** Of a service: `address:port` of each endpoint. */
  endpoints(service: string): readonly string[] {
    return (this.entries.endpoints.get(service) ?? [])
      .map(({ address, ports }) => `${address}:${ports[0]?.port}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.source.stop();
  }
}
