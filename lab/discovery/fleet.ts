/**
 * Simulated clients of discovery: one or thousands in a process, each with a
 * connection of its own, well-behaved or with the faults that one wants.
 *
 * What a server tells all of them is read once.
 *
 * @module
 */

import { sameBytes } from "../../proto/bytes/byte_arrays.ts";
import type { StatusCode } from "../../proto/grpc/status.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import type {
  DiscoveryMode,
  DiscoveryNode,
} from "../../proto/xds/discovery.ts";
import type { ResourceKind } from "../../proto/xds/resource.ts";
import { AdsClient } from "../../services/ads/ads_client.ts";
import { AdsConnection } from "../../services/ads/ads_connection.ts";
import type { Upstream } from "../../net/channel/upstream.ts";
import type { DecodedResource } from "../../services/ads/read_resource.ts";
import {
  type AdsChange,
  RefusedResource,
  type ResourceReader,
  type UsableResource,
} from "../../services/ads/ads_kind.ts";
import {
  type Condition,
  isFinal,
  readerFor,
  type SubscriberProfile,
  SubscriberRefusedError,
  SubscriberTimeoutError,
  wantsOf,
} from "../../services/ads/adsc/subscriber.ts";
import { ChangeLog, type FleetFigures, timesOf } from "./fleet_figures.ts";

/** Clients that are started at once; the next ones when these are answered. */
const STARTING_MAX = 100;

/** Between two looks at all clients. */
const LOOK_MS = 5;

/** What is done wrong on purpose. */
export interface Faults {
  /** Refused, whatever they say; with names only those. */
  readonly nack?: readonly FaultTarget[];
  /** The stream is left and another one opened, so often. */
  readonly reconnectMs?: number;
}

/** Resources of a kind, or one of them. */
export interface FaultTarget {
  readonly kind: ResourceKind;
  readonly name?: string;
}

export interface FleetOptions {
  readonly form: SubscriberProfile;
  readonly mode: DiscoveryMode;
  /** Who each client is. */
  readonly nodes: readonly DiscoveryNode[];
  readonly upstream: Upstream;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly faults?: Faults;
  readonly keepaliveMs?: number;
  /** What a client received. @param index Of the client. */
  readonly onChanged?: (
    changes: readonly AdsChange<DecodedResource>[],
    index: number,
  ) => void;
}

/** One client. */
interface Member {
  readonly client: AdsClient<DecodedResource>;
  readonly connection: AdsConnection<DecodedResource>;
  readonly startMs: number;
  syncedMs?: number;
  timer?: Timer;
}

export class Fleet {
  readonly #read: ResourceReader<DecodedResource>;
  readonly #members: Member[] = [];
  readonly #changes = new ChangeLog();
  readonly #startMs: number;
  readonly #refused = Promise.withResolvers<never>();
  #waiters: (() => void)[] = [];
  #problem: string | undefined;
  #isStopped = false;

  constructor(private readonly options: FleetOptions) {
    this.#startMs = options.timers.now();
    this.#read = shared(
      withNacks(readerFor(options.form), options.faults?.nack ?? []),
    );
    // The one that waits receives it; nobody may be waiting.
    this.#refused.promise.catch(() => {});
  }

  /** In the order of the nodes, as far as they have started. */
  get clients(): readonly AdsClient<DecodedResource>[] {
    return this.#members.map(({ client }) => client);
  }

  /** Rejects with a `SubscriberRefusedError` when a server will not have a client. */
  get whenRefused(): Promise<never> {
    return this.#refused.promise;
  }

  /** Why a client has no stream, the last time that one had none. */
  get problem(): string | undefined {
    return this.#problem;
  }

  get figures(): FleetFigures {
    const changes = this.#changes.figures(this.#startMs);
    const sum = (of: (member: Member) => number) =>
      this.#members.reduce((all, member) => all + of(member), 0);
    const kinds = ({ client }: Member) => Object.values(client.status);
    return {
      clients: this.#members.length,
      synced: timesOf(
        this.#members.flatMap(({ syncedMs }) => syncedMs ?? []),
      ),
      changes,
      spread: timesOf(
        changes.flatMap(({ clients, spreadMs }) => clients > 1 ? spreadMs : []),
      ),
      responses: sum((member) =>
        kinds(member).reduce((all, { responses }) => all + responses, 0)
      ),
      refused: sum((member) =>
        kinds(member).reduce((all, { refused }) => all + refused, 0)
      ),
      streams: sum(({ connection }) => connection.opened),
    };
  }

  /**
   * Waits until all clients have received all that they have asked for, and all
   * conditions hold for each of them.
   *
   * @throws {SubscriberRefusedError | SubscriberTimeoutError} One line.
   */
  async until(
    conditions: readonly Condition[],
    timeoutMs: number,
  ): Promise<void> {
    const { timers } = this.options;
    let isLate = false;
    const timer = timers.after(timeoutMs, () => {
      isLate = true;
      this.#wake();
    });
    try {
      while (true) {
        const unmet = this.#unmet(conditions);
        if (unmet === undefined) return;
        if (isLate) {
          throw new SubscriberTimeoutError(unmet, timeoutMs, this.#problem);
        }
        await Promise.race([
          new Promise<void>((resolve) => this.#waiters.push(resolve)),
          this.#refused.promise,
        ]);
        // Of thousands of clients many say something in one instant.
        if (this.options.nodes.length > 1) await this.#pause(LOOK_MS);
      }
    } finally {
      timer.cancel();
    }
  }

  /** Starts all clients; not all at once. */
  start(): void {
    const count = Math.min(STARTING_MAX, this.options.nodes.length);
    for (let i = 0; i < count; i++) this.#startNext();
  }

  /** Ends all streams. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const { timer } of this.#members) timer?.cancel();
    await Promise.all(this.#members.map(({ connection }) => connection.stop()));
  }

  #startNext(): void {
    const { nodes, form, mode, timers, faults = {} } = this.options;
    const index = this.#members.length;
    const node = nodes[index];
    if (node === undefined || this.#isStopped) return;
    const { reconnectMs } = faults;
    let hasSpoken = false;
    const onHeard = () => {
      if (hasSpoken) return;
      hasSpoken = true;
      this.#startNext();
    };
    const client = new AdsClient<DecodedResource>({
      mode,
      node,
      timers,
      read: this.#read,
      onChanged: (changes) => this.options.onChanged?.(changes, index),
      onAnswered: (kind, version) =>
        this.#changes.received(kind, version, timers.now()),
      onSettled: () => this.#settled(member),
    });
    for (const { kind, isWildcard, names } of wantsOf(form)) {
      client.want(kind, isWildcard, names);
    }
    const { upstream, random, keepaliveMs } = this.options;
    const connection = new AdsConnection({
      ...{ client, upstream, timers, random },
      ...keepaliveMs === undefined ? {} : { keepaliveMs },
      onOpen: onHeard,
      onProblem: (problem, _retryMs, code) => {
        onHeard();
        this.#failed(problem, code);
      },
    });
    const member: Member = { client, connection, startMs: timers.now() };
    this.#members.push(member);
    connection.start();
    if (reconnectMs !== undefined) this.#reconnectLater(member, reconnectMs);
  }

  #reconnectLater(member: Member, everyMs: number): void {
    member.timer = this.options.timers.after(everyMs, () => {
      member.connection.reconnect("as it was told to");
      this.#reconnectLater(member, everyMs);
    });
  }

  #settled(member: Member): void {
    if (member.syncedMs === undefined && member.client.isSynced) {
      member.syncedMs = this.options.timers.now() - member.startMs;
    }
    this.#wake();
  }

  #failed(problem: string, code: StatusCode | undefined): void {
    this.#problem = problem;
    if (isFinal(code)) {
      this.#refused.reject(new SubscriberRefusedError(problem));
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.options.timers.after(ms, resolve));
  }

  #wake(): void {
    for (const wake of this.#waiters.splice(0)) wake();
  }

  /** What is not as it is waited for, of the first client of which it is not. */
  #unmet(conditions: readonly Condition[]): string | undefined {
    const { nodes } = this.options;
    for (const [index, { client }] of this.#members.entries()) {
      const of = nodes.length === 1 ? "" : ` (client ${index + 1})`;
      if (!client.isSynced) return `not all was heard of${of}`;
      for (const condition of conditions) {
        const seen = condition.check(client);
        if (seen === undefined) continue;
        return `wanted ${condition.text}, saw ${seen}${of}`;
      }
    }
    return this.#members.length === nodes.length
      ? undefined
      : `${this.#members.length} of ${nodes.length} clients have started`;
  }
}

/** A resource is read again only if its content has changed. */
function shared(
  read: ResourceReader<DecodedResource>,
): ResourceReader<DecodedResource> {
  const last = new Map<
    string,
    {
      readonly value: Uint8Array;
      readonly usable: UsableResource<DecodedResource>;
    }
  >();
  return (kind, resource) => {
    const key = `${kind} ${resource.name}`;
    const known = last.get(key);
    if (known !== undefined && sameBytes(known.value, resource.value)) {
      return known.usable;
    }
    const usable = read(kind, resource);
    last.set(key, { value: resource.value.slice(), usable });
    return usable;
  };
}

function withNacks(
  read: ResourceReader<DecodedResource>,
  targets: readonly FaultTarget[],
): ResourceReader<DecodedResource> {
  if (targets.length === 0) return read;
  return (kind, resource) => {
    const isRefused = targets.some((target) =>
      target.kind === kind && (target.name ?? resource.name) === resource.name
    );
    if (isRefused) throw new RefusedResource("refused on purpose");
    return read(kind, resource);
  };
}
