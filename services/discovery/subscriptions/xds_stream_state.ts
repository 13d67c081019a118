/**
 * What one xDS stream was sent, and what it is to be sent next.
 *
 * Pure: requests and views go in, responses come out, and the caller passes the
 * time. Neither transport nor identity is known here, nor the content of a
 * resource. After each {@linkcode XdsStreamState.onRequest} and
 * {@linkcode XdsStreamState.onView}, and at {@linkcode XdsStreamState.dueMs}, call
 * {@linkcode XdsStreamState.next} until it has nothing.
 *
 * This file joins the kinds: nonces, and the order in which a client receives
 * them, make before break. `kind_subscription.ts` is about one kind,
 * `sotw_subscription.ts` and `delta_subscription.ts` about the differences of the
 * two protocols.
 *
 * @module
 */

import { GrpcError, StatusCode } from "../../../proto/grpc/status.ts";
import type {
  DiscoveryMode,
  DiscoveryRequest,
  ResponseBody,
} from "../../../proto/xds/discovery.ts";
import {
  kindOfUrl,
  RESOURCE_KINDS,
  type ResourceKind,
} from "../../../proto/xds/resource.ts";
import type { View } from "../view/view.ts";
import { DeltaSubscription } from "./delta_subscription.ts";
import type { ResourceStatus, StreamStatus } from "./stream_status.ts";
import { PARENTS } from "./removals.ts";
import { select } from "./selection.ts";
import { type Names, namesOfList, NO_NAMES, union } from "./name_set.ts";
import { SotwSubscription } from "./sotw_subscription.ts";
import { type ClientProfile, PLAIN_PROFILE } from "./kind_subscription.ts";
import { SLOW_AFTER_MS } from "./ack_tracker.ts";
import { type ClusterAcks, type Counted, Warming } from "./warming.ts";

/** Types that are not served and are kept for people. */
export const FOREIGN_TYPES_MAX = 16;

/** Characters of one of them. */
export const FOREIGN_TYPE_LENGTH_MAX = 256;

export interface XdsStreamStateOptions {
  readonly mode: DiscoveryMode;
  /** All, if absent. One kind: a request may leave out its type. */
  readonly kinds?: readonly ResourceKind[] | undefined;
  /**
   * The prefix of the stream's nonces. Nonces of two streams should differ, so that
   * a nonce of an earlier stream is recognized; absent: none.
   */
  readonly noncePrefix?: string;
}

/** A response that may be sent now. */
export interface OutgoingResponse {
  readonly kind: ResourceKind;
  readonly body: ResponseBody;
  readonly nonce: string;
}

type OneSubscription = SotwSubscription | DeltaSubscription;

/** The kinds that a client must have of a cluster before anything leads to it. */
const WARMED: readonly ResourceKind[] = ["cluster", "endpoints"];

/** The kinds that lead to it. */
const LEADING: readonly ResourceKind[] = PARENTS.cluster;

/** See the module description. */
export class XdsStreamState {
  /** How the client is served; set it before the first request. */
  profile: ClientProfile = PLAIN_PROFILE;
  readonly #mode: DiscoveryMode;
  readonly #kinds: readonly ResourceKind[];
  readonly #noncePrefix: string;
  /** In the order in which they are sent; only what was asked for. */
  #subscriptions: readonly OneSubscription[] = [];
  #foreignTypes: Set<string> | undefined;
  #view: View | undefined;
  #generation = 0;
  #responses = 0;
  /** Whether something happened since `next` had nothing. */
  #isStirred = false;
  #stirredMs = 0;
  readonly #warming = new Warming();
  readonly #acks: ClusterAcks = {
    isUsable: (cluster) =>
      WARMED.every((kind) => this.#find(kind)?.isUsable(cluster) !== false),
    hasAcked: (cluster) =>
      WARMED.every((kind) => {
        const subscription = this.#find(kind);
        return subscription?.asksFor(cluster) === true &&
          subscription.isUsable(cluster);
      }),
    asksForRoute: (name) => this.#find("route")?.asksFor(name) === true,
    interimRoutesOf: (before, after) =>
      this.profile.interimRoutesOf?.(before, after),
  };
  /** Clusters that were sent before the client asked for endpoints. */
  #earlyClusters: Names = NO_NAMES;
  #dueMs = Infinity;

  constructor({ mode, kinds, noncePrefix }: XdsStreamStateOptions) {
    this.#mode = mode;
    this.#kinds = kinds ?? RESOURCE_KINDS;
    this.#noncePrefix = noncePrefix ?? "";
  }

  /** When `next` may have something without a request or view; else Infinity. */
  get dueMs(): number {
    return this.#dueMs;
  }

  /** The same for what callers of the client wait for: moments, or Infinity. */
  get soonMs(): number {
    return this.#warming.settledMs;
  }

  /**
   * @returns Whether it is the first answer to a response.
   * @throws {GrpcError} INVALID_ARGUMENT, RESOURCE_EXHAUSTED: the stream has to
   *   end with it.
   */
  onRequest(request: DiscoveryRequest, nowMs: number): boolean {
    const kind = this.#kindOf(request.typeUrl);
    if (kind === undefined) return false;
    this.#stir(nowMs);
    const subscription = this.#find(kind) ?? this.#add(kind);
    const isAnswer = subscription.isOpen &&
      subscription.nonce === request.responseNonce;
    if (request.mode === "sotw" && subscription instanceof SotwSubscription) {
      subscription.onRequest(request, nowMs);
    } else if (
      request.mode === "delta" && subscription instanceof DeltaSubscription
    ) {
      subscription.onRequest(request, nowMs);
    } else {
      throw new TypeError(
        `A request of ${request.mode} on a stream of ${this.#mode}`,
      );
    }
    return isAnswer;
  }

  /** The view to send from now on. Nothing is sent before the first view. */
  onView(view: View, nowMs: number): void {
    if (view === this.#view) return;
    this.#view = view;
    this.#generation++;
    const isLate = this.#isStirred && nowMs >= this.#stirredMs + SLOW_AFTER_MS;
    // The client reads nothing: the old states must not pile up meanwhile.
    if (isLate) this.#observe(view, nowMs, true);
    this.#stir(nowMs);
  }

  #stir(nowMs: number): void {
    if (!this.#isStirred) this.#stirredMs = nowMs;
    this.#isStirred = true;
  }

  /** Counts as sent when it is returned. */
  next(nowMs: number): OutgoingResponse | undefined {
    if (!this.#isStirred && nowMs < this.#dueMs) return undefined;
    if (this.#view === undefined) return undefined;
    this.#observe(this.#view, nowMs, false);
    let isClusterBlocked = false;
    for (const subscription of this.#subscriptions) {
      const { kind } = subscription;
      // It could lead to clusters that the client does not know.
      const waits = isClusterBlocked && !subscription.isAwaited &&
        LEADING.includes(kind);
      const response = waits ? undefined : this.#respond(subscription, nowMs);
      if (response !== undefined) return response;
      if (kind === "cluster") {
        isClusterBlocked = subscription.isBlocked(nowMs);
      }
    }
    this.#isStirred = false;
    this.#dueMs = this.#warming.dueMs;
    for (const { dueMs } of this.#subscriptions) {
      if (dueMs < this.#dueMs) this.#dueMs = dueMs;
    }
    return undefined;
  }

  /** Whether the client has not answered a response. */
  get isOpen(): boolean {
    return this.#subscriptions.some(({ isOpen }) => isOpen);
  }

  /** Characters of all names that the client asks for. */
  get namesLength(): number {
    let length = 0;
    for (const { namesLength } of this.#subscriptions) length += namesLength;
    return length;
  }

  /** Made when it is asked for. */
  get status(): StreamStatus {
    return {
      kinds: this.#subscriptions.map((subscription) => {
        const { status } = subscription;
        const isHeld = this.#isHeld(subscription);
        return isHeld ? { ...status, isBehind: true } : status;
      }),
      waitsFor: this.#warming.clusters,
      early: this.#warming.early,
      foreignTypes: [...this.#foreignTypes ?? []],
    };
  }

  /** By kind, what the client has and should have; for people. */
  get resourceStatuses(): ReadonlyMap<ResourceKind, readonly ResourceStatus[]> {
    return new Map(
      this.#subscriptions.map((subscription) => {
        const { kind } = subscription;
        const latest = this.#view?.resources[kind];
        return [kind, subscription.resourceStatuses(latest)];
      }),
    );
  }

  /** Whether the latest state of a kind waits for clusters. */
  #isHeld({ kind, now }: OneSubscription): boolean {
    const { waiting } = this.#warming;
    return waiting !== undefined && LEADING.includes(kind) &&
      waiting.view.resources[kind] !== now;
  }

  /** `undefined` for a type that is not served, which is no error. */
  #kindOf(typeUrl: string): ResourceKind | undefined {
    const only = this.#kinds.length === 1 ? this.#kinds[0] : undefined;
    if (typeUrl === "") {
      if (only !== undefined) return only;
      throw invalid("has no type_url, which tells what it asks for");
    }
    const kind = kindOfUrl(typeUrl);
    if (kind !== undefined && this.#kinds.includes(kind)) return kind;
    const shown = typeUrl.slice(0, FOREIGN_TYPE_LENGTH_MAX);
    if (only !== undefined) {
      throw invalid(`asks for ${shown} where there is only ${only}`);
    }
    this.#foreignTypes ??= new Set();
    if (this.#foreignTypes.size < FOREIGN_TYPES_MAX) {
      this.#foreignTypes.add(shown);
    }
    return undefined;
  }

  #find(kind: ResourceKind): OneSubscription | undefined {
    for (const subscription of this.#subscriptions) {
      if (subscription.kind === kind) return subscription;
    }
    return undefined;
  }

  #add(kind: ResourceKind): OneSubscription {
    const subscription = this.#mode === "sotw"
      ? new SotwSubscription(kind, this.profile)
      : new DeltaSubscription(kind, this.profile);
    this.#subscriptions = [...this.#subscriptions, subscription].sort((a, b) =>
      RESOURCE_KINDS.indexOf(a.kind) - RESOURCE_KINDS.indexOf(b.kind)
    );
    return subscription;
  }

  #observe(latest: View, nowMs: number, isLate: boolean): void {
    for (const subscription of this.#subscriptions) {
      const { kind } = subscription;
      const { view: { resources }, generation } = LEADING.includes(kind)
        ? this.#passed(latest, nowMs)
        : { view: latest, generation: this.#generation };
      if (!subscription.stays(resources[kind], generation)) {
        const holdsRemovals = this.#holdsRemovals(kind);
        const moment = { generation, nowMs, holdsRemovals, isLate };
        subscription.observe(resources[kind], moment);
      }
      if (subscription instanceof SotwSubscription) subscription.tick(nowMs);
      subscription.retryNacked(nowMs);
    }
    this.#sendEarlyClusters();
    for (const subscription of this.#subscriptions) {
      if (!subscription.isHolding) continue;
      subscription.release(this.#clearedTo(subscription.kind), nowMs);
    }
  }

  /** The view whose listeners and routes are sent. */
  #passed(view: View, nowMs: number): Counted {
    const latest = { view, generation: this.#generation };
    return this.#warming.pass(latest, this.#acks, nowMs);
  }

  /** SotW sends removals of clusters and listeners only. */
  #holdsRemovals(kind: ResourceKind): boolean {
    if (this.#mode === "sotw" && kind !== "cluster") return false;
    return PARENTS[kind].some((parent) =>
      this.#find(parent)?.isEmpty === false
    );
  }

  /** The generation up to which the client acknowledged all parents of `kind`. */
  #clearedTo(kind: ResourceKind): number {
    let clearedTo = Infinity;
    for (const kindOfParent of PARENTS[kind]) {
      const parent = this.#find(kindOfParent);
      if (parent === undefined || parent.isEmpty) continue;
      clearedTo = Math.min(clearedTo, parent.clearedTo);
    }
    return clearedTo;
  }

  #respond(
    subscription: OneSubscription,
    nowMs: number,
  ): OutgoingResponse | undefined {
    const sent = subscription.respond(
      nowMs,
      () => `${this.#noncePrefix}${++this.#responses}`,
    );
    if (sent === undefined) return undefined;
    const { kind } = subscription;
    const { body, nonce, fresh } = sent;
    if (kind === "cluster") this.#onClustersSent(fresh);
    return { kind, body, nonce };
  }

  /**
   * A cluster that was sent again waits for endpoints, even for unchanged ones:
   * a client that reconnects may have them from before, and still waits.
   */
  #onClustersSent(fresh: Names): void {
    const endpoints = this.#find("endpoints");
    if (endpoints !== undefined) return endpoints.onParentsSent(fresh);
    const all = union(this.#earlyClusters, fresh);
    const { resources } = select(all, this.#view!.resources.cluster);
    this.#earlyClusters = namesOfList(resources);
  }

  #sendEarlyClusters(): void {
    if (this.#earlyClusters.size === 0) return;
    const endpoints = this.#find("endpoints");
    if (endpoints === undefined) return;
    endpoints.onParentsSent(this.#earlyClusters);
    this.#earlyClusters = NO_NAMES;
  }
}

function invalid(what: string): GrpcError {
  return new GrpcError(
    StatusCode.INVALID_ARGUMENT,
    `The discovery request ${what}`,
  );
}
