/**
 * Servers that meet at a Kubernetes API server. Each has a Lease with upstream's
 * name and labels, so that Konnectivity's agents can count it, and what it
 * publishes of itself as an annotation; agents are in annotations of further
 * Leases, which have none of upstream's labels. So nothing but Leases is needed.
 * What is told of another topic has Leases and labels of its own.
 *
 * Who renews its Lease is there. Whether somebody does is seen here by its
 * changes, and only while this server's own renewals are seen: no two clocks are
 * compared, and a watch that stands still ends nobody.
 *
 * @module
 */

import type { MetricRegistry } from "../../platform/metrics/metrics.ts";
import type { RequestOptions } from "../../neighbours/kubernetes/client.ts";
import {
  isKubernetesTrouble,
  KubernetesError,
} from "../../neighbours/kubernetes/errors.ts";
import { leaseEndMs } from "../../neighbours/kubernetes/leases.ts";
import {
  ListWatch,
  type ListWatchClient,
} from "../../neighbours/kubernetes/list_watch.ts";
import type { Lease } from "../../neighbours/kubernetes/objects.ts";
import type { ObjectChange } from "../../neighbours/kubernetes/object_copy.ts";
import { LEASES, pathOf } from "../../neighbours/kubernetes/paths.ts";
import { unawaited, worldly } from "../../platform/errors/internal_errors.ts";
import { atMost } from "../../platform/time/deadline.ts";
import { readInstanceId } from "../../proto/peer/instance_id.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { countLeases } from "../cluster/kubernetes_metrics.ts";
import { type LeaseClient, ServerLease } from "../cluster/server_lease.ts";
import { LiveMembers } from "./live_members.ts";
import {
  type EngineEvents,
  MEMBER_PART,
  type MemberEngine,
  PART_NAME,
  type PartChange,
} from "./member_engine.ts";
import { parseMember } from "./member_record.ts";
import { PartWriter } from "./part_writer.ts";

/** Label of all Leases that are looked at; its value is the part. */
export const PART_LABEL = "server.tunnel/part";

/** The same of a topic. */
export function partLabel(topic: string): string {
  return topic === "" ? PART_LABEL : `server.tunnel/${topic}-part`;
}

/** Label of Leases that list agents: whose they are. */
export const INSTANCE_LABEL = "server.tunnel/instance";

/** The part's text. */
export const TEXT_ANNOTATION = "server.tunnel/text";

/** Renewals in the time after which a server is gone. */
const RENEWALS = 4;

/** For one request. */
const TIMEOUT_MS = 5_000;

/** How long the end of a server may wait until all is taken back. */
const STOP_MS = 2_000;

/** What a server that is gone has left is removed after so many times that long. */
const REMOVED_AFTER = 10;

/** What `KubernetesEngine` needs from outside. */
export interface KubernetesEngineOptions {
  readonly client: ListWatchClient & LeaseClient;
  readonly namespace: string;
  /** What is told, such as `offers`; absent: who is there, as upstream tells it. */
  readonly topic?: string;
  /** Of servers' leases, as upstream's agents select them. */
  readonly labels: Readonly<Record<string, string>>;
  readonly serverId: string;
  readonly instanceId: string;
  /** A server that says nothing for so long is gone. */
  readonly timeoutMs: number;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  readonly metrics: MetricRegistry;
}

export class KubernetesEngine implements MemberEngine {
  readonly #options: KubernetesEngineOptions;
  readonly #partLabel: string;
  /** Of Leases that upstream does not name. */
  readonly #prefix: string;
  readonly #lease: ServerLease;
  readonly #writer: PartWriter;
  readonly #watch: ListWatch<Lease>;
  readonly #live: LiveMembers;
  /** Of agents, as they were written. */
  readonly #written = new Map<string, Lease>();
  readonly #stopping = new AbortController();
  #events: EngineEvents | undefined;
  #member = "";
  #state: "idle" | "published" | "retired" = "idle";
  #timer: Timer | undefined;

  constructor(options: KubernetesEngineOptions) {
    const { client, namespace, labels, timers, timeoutMs } = options;
    const { topic = "" } = options;
    this.#options = options;
    this.#partLabel = partLabel(topic);
    this.#prefix = topic === "" ? "tunnel-" : `tunnel-${topic}-`;
    this.#live = new LiveMembers(options);
    const problem = (message: string) => this.#events?.problem(message);
    this.#lease = new ServerLease({
      ...options,
      ...(topic === "" ? {} : { name: `${this.#prefix}${options.serverId}` }),
      labels: { ...labels, [this.#partLabel]: MEMBER_PART },
      annotations: () => ({ [TEXT_ANNOTATION]: this.#member }),
      renewMs: timeoutMs / RENEWALS,
      observer: { ...countLeases(options.metrics), warn: problem },
    });
    this.#writer = new PartWriter({
      timers,
      isReady: () => this.#state === "published",
      write: (part, text) => this.#write(part, text),
      problemOf: (error) => worldly("task", error, isKubernetesTrouble).message,
      onProblem: problem,
    });
    this.#watch = new ListWatch<Lease>({
      client,
      path: pathOf(LEASES, { namespace }),
      query: { labelSelector: this.#partLabel },
      timers,
      random: options.random,
      onChanges: (changes) => this.#changed(changes),
      onFollowing: () => {
        this.#live.follow(true);
        this.#events?.following();
      },
      onProblem: (error) => {
        this.#live.follow(false);
        problem(`Cannot follow servers' leases: ${error.message}`);
      },
    });
  }

  start(events: EngineEvents): void {
    this.#events = events;
    this.#watch.start();
    this.#judgeSoon();
  }

  publish(part: string, text: string | undefined): void {
    if (part !== MEMBER_PART) return this.#writer.publish(part, text);
    if (text === undefined) {
      this.#state = "retired";
      this.#live.retire();
      // `stop` waits for the same.
      return unawaited("task", this.#lease.stop());
    }
    this.#member = text;
    if (this.#state === "published") return this.#lease.renew();
    this.#state = "published";
    this.#lease.start();
    this.#writer.resume();
  }

  async stop(): Promise<void> {
    const { timers } = this.#options;
    this.#stopping.abort();
    this.#timer?.cancel();
    await atMost(
      timers,
      STOP_MS,
      Promise.all([
        this.#watch.stop(),
        this.#writer.stop(),
        this.#state === "idle" ? undefined : this.#lease.stop(),
        ...[...this.#written.values()].map((lease) => this.#remove(lease)),
      ]),
    );
  }

  // --- What this server publishes ----------------------------------------------

  async #write(part: string, text: string | undefined): Promise<void> {
    const { client, namespace } = this.#options;
    const old = this.#written.get(part);
    const collection = pathOf(LEASES, { namespace });
    if (text === undefined) {
      this.#written.delete(part);
      if (old !== undefined) await this.#remove(old);
      return;
    }
    const lease = this.#leaseOf(part, text, old);
    const path = pathOf(LEASES, { namespace, name: lease.metadata.name! });
    try {
      this.#written.set(
        part,
        old === undefined
          ? await client.create(collection, lease, this.#request)
          : await client.replace(path, lease, this.#request),
      );
    } catch (error) {
      // Somebody has removed or changed it: then it is written as it is now.
      this.#written.delete(part);
      const code = error instanceof KubernetesError ? error.code : 0;
      if (code === 409) {
        const found = await client.get<Lease>(path, this.#request);
        this.#written.set(part, found);
      }
      if (code !== 409 && code !== 404) throw error;
      this.#writer.mark(part, false);
    }
  }

  #leaseOf(part: string, text: string, old: Lease | undefined): Lease {
    const { namespace, instanceId, serverId } = this.#options;
    return {
      apiVersion: LEASES.apiVersion,
      kind: "Lease",
      metadata: {
        ...old?.metadata,
        name: this.#prefix +
          `${part}-${instanceId.toLowerCase().replaceAll("_", "-")}`,
        namespace,
        labels: { [this.#partLabel]: part, [INSTANCE_LABEL]: instanceId },
        annotations: { [TEXT_ANNOTATION]: text },
      },
      spec: { holderIdentity: serverId },
    };
  }

  async #remove({ metadata }: Lease): Promise<void> {
    const { client, namespace } = this.#options;
    const path = pathOf(LEASES, { namespace, name: metadata.name! });
    try {
      await client.delete(path, { timeoutMs: TIMEOUT_MS });
    } catch (error) {
      worldly("task", error, isKubernetesTrouble);
    }
  }

  get #request(): RequestOptions {
    return { timeoutMs: TIMEOUT_MS, signal: this.#stopping.signal };
  }

  // --- What all publish --------------------------------------------------------

  #changed(changes: readonly ObjectChange<Lease>[]): void {
    const { instanceId: own } = this.#options;
    const parts: PartChange[] = [];
    for (const change of changes) {
      const part = this.#partOf(change.object);
      if (part === undefined) continue;
      const isGone = change.type === "removed";
      if (part.part === MEMBER_PART) {
        const isOld = change.type === "added" && part.instanceId !== own &&
          (leaseEndMs(change.object) ?? 0) < this.#options.wallClock();
        if (isOld) {
          // Of a server that died, unless its clock is wrong: then it writes again.
          this.#live.left(part.instanceId);
          continue;
        }
        if (isGone) this.#live.gone(part.instanceId);
        else this.#live.heard(part.instanceId);
        if (isGone && part.instanceId === own) this.#lease.renew();
      } else if (isGone && part.instanceId === own) {
        this.#written.delete(part.part);
        this.#writer.mark(part.part, false);
      }
      const isRenewed = change.type === "updated" &&
        this.#partOf(change.previous)?.text === part.text &&
        !this.#live.wasSilent(part.instanceId);
      if (!isRenewed) parts.push(isGone ? { ...part, text: undefined } : part);
    }
    if (parts.length > 0) this.#events?.changed(parts);
  }

  #judgeSoon(): void {
    const { timers, timeoutMs } = this.#options;
    this.#timer = timers.after(timeoutMs / RENEWALS, () => {
      const silent = this.#live.silent();
      const changes = silent.map((instanceId): PartChange => ({
        instanceId,
        part: MEMBER_PART,
        text: undefined,
      }));
      if (changes.length > 0) this.#events?.changed(changes);
      this.#tidy();
      this.#judgeSoon();
    });
  }

  /** Agents' lists of a server that died stay; its Lease is removed as upstream does. */
  #tidy(): void {
    const { timers, timeoutMs } = this.#options;
    for (const lease of this.#watch.objects.values()) {
      const part = this.#partOf(lease);
      if (part === undefined || part.part === MEMBER_PART) continue;
      const goneMs = this.#live.goneMs(part.instanceId);
      if (goneMs === undefined) this.#live.left(part.instanceId);
      else if (timers.now() - goneMs > REMOVED_AFTER * timeoutMs) {
        this.#live.left(part.instanceId);
        unawaited("task", this.#remove(lease));
      }
    }
  }

  /** Whose part a Lease is; nothing of ours otherwise. */
  #partOf({ metadata }: Lease):
    | (PartChange & { readonly text: string })
    | undefined {
    const labels = new Map(Object.entries(metadata.labels ?? {}));
    const part = labels.get(this.#partLabel) ?? "";
    const text = metadata.annotations?.[TEXT_ANNOTATION];
    if (text === undefined || !PART_NAME.test(part)) return undefined;
    const said = part === MEMBER_PART
      ? parseMember(text)?.instanceId
      : labels.get(INSTANCE_LABEL);
    const instanceId = readInstanceId(said);
    return instanceId === undefined ? undefined : { instanceId, part, text };
  }
}
