/**
 * What one node may use of discovery: streams, groups of clients, bytes that
 * the server keeps for it, and time in which its requests are read. Each cost
 * that all clients share is counted for the node that causes it, so a node that
 * uses too much, or a program on it, exhausts its own quota only.
 *
 * A node's quota is found by its certificate. Clients without one have the
 * quota of the address that they call from, and programs on the server's own
 * machine have one together.
 *
 * @module
 */

import { GrpcError, StatusCode } from "../../../proto/grpc/status.ts";
import {
  type BucketSize,
  TokenBucket,
} from "../../../proto/streams/token_bucket.ts";
import { Tally } from "../../../proto/sync/tally.ts";
import type { Clock } from "../../../proto/sync/clock.ts";
import { provenNames } from "../../../policy/subject.ts";
import type { CallOrigin } from "./subscriber.ts";
import type { Views } from "../generate/views.ts";

/** The most that one quota grants. */
export interface QuotaLimits {
  readonly streams: number;
  /**
   * Groups that its clients may be of at once. Each has a view of the whole
   * catalog, and clients choose their group themselves: by zone, form, proxy.
   */
  readonly groups: number;
  /** New groups: the server generates a view for each. */
  readonly newGroups: BucketSize;
  /** Bytes of names, metadata and unfinished requests. */
  readonly bytes: number;
  /** Milliseconds for its requests; then they wait. */
  readonly work: BucketSize;
  /** Lines of the log about it. */
  readonly lines: BucketSize;
}

/** Of a node: each program that it relays has a stream, or one for each kind. */
export const NODE_LIMITS: QuotaLimits = {
  streams: 2_048,
  groups: 16,
  newGroups: { burst: 32, perSecond: 0.1 },
  bytes: 128 * 1_024 * 1_024,
  work: { burst: 2_000, perSecond: 250 },
  lines: { burst: 1_000, perSecond: 1 },
};

/**
 * Quota of programs on the server's machine, which could harm it in worse ways.
 */
export const LOCAL_LIMITS: QuotaLimits = {
  streams: Infinity,
  groups: 256,
  newGroups: { burst: 1_024, perSecond: 10 },
  bytes: 1_024 * 1_024 * 1_024,
  work: { burst: Infinity, perSecond: 0 },
  lines: { burst: 10_000, perSecond: 10 },
};

/**
 * Quotas without a stream that are remembered, so that a new connection gives
 * no client a new quota; beyond this limit the oldest are forgotten.
 */
export const IDLE_QUOTAS_MAX = 4_096;

/** The charge in advance when a stream with waiting requests goes on. */
export const RESUMED_WORK_MS = 20;

/** See the module description. */
export class Quota {
  readonly #work: TokenBucket;
  readonly #newGroups: TokenBucket;
  readonly #lines: TokenBucket;
  #isSilent = false;
  /** By key: how many streams are of that group. */
  readonly #groups = new Tally<string>();
  #streams = 0;
  #bytes = 0;

  /** @param name Whose it is, for sentences. */
  constructor(
    readonly name: string,
    private readonly limits: QuotaLimits,
    private readonly clock: Clock,
  ) {
    this.#work = new TokenBucket(limits.work, clock.now());
    this.#newGroups = new TokenBucket(limits.newGroups, clock.now());
    this.#lines = new TokenBucket(limits.lines, clock.now());
  }

  get streams(): number {
    return this.#streams;
  }

  /** What the server keeps for it. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @throws {GrpcError} RESOURCE_EXHAUSTED. */
  enter(): void {
    if (this.#streams >= this.limits.streams) {
      throw tooMuch(this.name, `${this.#streams} discovery streams`);
    }
    this.#streams++;
  }

  leave(): void {
    this.#streams--;
  }

  /**
   * A stream joins a group.
   *
   * @param isKnown Another stream is in that group already.
   * @throws {GrpcError} RESOURCE_EXHAUSTED.
   */
  joinGroup(key: string, isKnown: boolean): void {
    if (this.#groups.of(key) === 0) {
      if (this.#groups.size >= this.limits.groups) {
        const what = `${this.#groups.size} kinds of client at once (zone, ` +
          "form, proxy)";
        throw tooMuch(this.name, what);
      }
      if (!isKnown && !this.#newGroups.spend(this.clock.now())) {
        throw tooMuch(
          this.name,
          "ever new kinds of client (zone, form, proxy)",
        );
      }
    }
    this.#groups.add(key);
  }

  /** The server moves a stream to another group, which costs the node nothing. */
  moveGroup(before: string, after: string): void {
    this.leaveGroup(before);
    this.#groups.add(after);
  }

  leaveGroup(key: string): void {
    this.#groups.add(key, -1);
  }

  /**
   * Counts bytes that the server keeps, more or fewer.
   *
   * @throws {GrpcError} RESOURCE_EXHAUSTED; the bytes are counted even then.
   */
  keep(bytes: number): void {
    this.#bytes += bytes;
    if (bytes <= 0 || this.#bytes <= this.limits.bytes) return;
    throw tooMuch(this.name, `${this.#bytes} bytes of requests to be kept`);
  }

  /**
   * Whether a line about it may be written: a client that joins and leaves all
   * day, or refuses every response, fills no disk.
   *
   * @returns `no more`: a line that says that others are omitted.
   */
  get line(): "one" | "no more" | "none" {
    if (this.#lines.spend(this.clock.now())) {
      this.#isSilent = false;
      return "one";
    }
    if (this.#isSilent) return "none";
    this.#isSilent = true;
    return "no more";
  }

  /** Counts the time that reading and answering its requests took. */
  worked(tookMs: number): void {
    if (tookMs > 0) this.#work.refund(-tookMs);
  }

  /** Whether more of its requests may be read now. */
  get mayGoOn(): boolean {
    return this.#work.spend(this.clock.now(), 0);
  }
}

/** All quotas, by the node or address that a call counts for. */
export class Quotas {
  readonly #quotas = new Map<string, Quota>();

  constructor(private readonly clock: Clock) {}

  /** The same one for the same caller. */
  of(origin: CallOrigin): Quota {
    const name = nameOf(origin);
    let quota = this.#quotas.get(name);
    if (quota === undefined) {
      if (this.#quotas.size >= IDLE_QUOTAS_MAX) this.#forgetIdle();
      const limits = origin.needsNoProof ? LOCAL_LIMITS : NODE_LIMITS;
      this.#quotas.set(name, quota = new Quota(name, limits, this.clock));
    }
    return quota;
  }

  /** Half of them at once: this is not done for every caller. */
  #forgetIdle(): void {
    let left = IDLE_QUOTAS_MAX / 2;
    for (const [name, { streams }] of this.#quotas) {
      if (streams > 0) continue;
      this.#quotas.delete(name);
      if (--left === 0) return;
    }
  }
}

function nameOf({ needsNoProof, identity, remoteAddress }: CallOrigin): string {
  if (needsNoProof) return "programs on the server's machine";
  const [node] = provenNames(identity) ?? [];
  if (node !== undefined) return `node ${node}`;
  return `clients at ${remoteAddress.replace(/:\d+$/, "")}`;
}

function tooMuch(name: string, what: string): GrpcError {
  return new GrpcError(
    StatusCode.RESOURCE_EXHAUSTED,
    `Cannot serve more discovery to ${name}: it has ${what}, and no node may ` +
      "have more",
  );
}

/** Groups without a stream that are kept; then the older half goes. */
export const IDLE_GROUPS_MAX = 64;

/**
 * How many streams are of each group of clients. A group without streams is kept
 * for clients that come back, up to a limit: clients choose their group
 * themselves, and the server keeps a view of the catalog for each.
 */
export class ClientGroupUse {
  readonly #streams = new Tally<string>();
  /** The longest idle first. */
  readonly #idle = new Set<string>();

  constructor(private readonly views: Pick<Views, "forget">) {}

  /**
   * A stream joins a group, at the cost of a quota.
   *
   * @param before The group that it leaves, because rules have changed: that
   *   costs its node nothing.
   * @throws {GrpcError} RESOURCE_EXHAUSTED, unless it was of a group before.
   */
  join(quota: Quota, key: string, before?: string): void {
    const isKnown = this.#streams.of(key) > 0 || this.#idle.has(key);
    if (before === undefined) quota.joinGroup(key, isKnown);
    else {
      quota.moveGroup(before, key);
      this.#leave(before);
    }
    this.#idle.delete(key);
    this.#streams.add(key);
  }

  /** A stream of the group is over. */
  leave(quota: Quota, key: string): void {
    quota.leaveGroup(key);
    this.#leave(key);
  }

  #leave(key: string): void {
    if (this.#streams.add(key, -1) > 0) return;
    this.#idle.add(key);
    if (this.#idle.size <= IDLE_GROUPS_MAX) return;
    const old = [...this.#idle].slice(0, IDLE_GROUPS_MAX / 2);
    for (const key of old) this.#idle.delete(key);
    this.views.forget(old);
  }
}
