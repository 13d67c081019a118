/**
 * One kind on a stream of the state of the world (SotW).
 *
 * A request repeats all that the client asks for, answers the last response, or
 * both. A request about an older response is stale: the client sent it before
 * it received the last response, and will send a newer request. Listeners and
 * clusters are sent as the whole state, where absence is removal; the other
 * kinds in parts: they are removed only when the resource that leads to them
 * is.
 *
 * @module
 */

import type {
  ResponseBody,
  SotwRequest,
} from "../../../proto/xds/discovery.ts";
import type { Resource, ResourceKind } from "../../../proto/xds/resource.ts";
import type { ByName } from "../view/view.ts";
import {
  addedNames,
  cutTo,
  EVERYTHING,
  type Names,
  type NameSet,
  nameSetOfList,
  namesOfList,
  NO_NAMES,
  NOTHING_NAMED,
  sharedNamesOf,
  union,
} from "./name_set.ts";
import { patched, select, type Selection, selectionOf } from "./selection.ts";
import { type ClientProfile, KindSubscription } from "./kind_subscription.ts";

/**
 * A client that asks again is sent the same again, but not more often than this:
 * it may be one that answers everything twice.
 */
export const REPEAT_WAIT_MS = 1_000;

/** See the module description. */
export class SotwSubscription extends KindSubscription {
  /** As the client sent it, so that its repetition is known by identity. */
  #list: readonly string[] | undefined;
  #hasNamed = false;
  /**
   * Clusters that were sent again, whose endpoints the client will request
   * again.
   */
  #warming: Names = NO_NAMES;
  /** Names that are missing in a stale request. */
  #dropped: Names = NO_NAMES;
  #repeatAfterMs = 0;
  #isRepeatPending = false;

  constructor(kind: ResourceKind, profile: ClientProfile) {
    super(kind, "sotw", profile);
  }

  override get dueMs(): number {
    const dueMs = super.dueMs;
    return this.#isRepeatPending ? Math.min(dueMs, this.#repeatAfterMs) : dueMs;
  }

  /** @throws {GrpcError} RESOURCE_EXHAUSTED when it asks for too much. */
  onRequest(request: SotwRequest, nowMs: number): void {
    const { resourceNames, responseNonce, errorDetail } = request;
    const isFirst = this.nonce === "";
    const isOfLast = !isFirst && responseNonce === this.nonce;
    if (!isFirst && responseNonce !== "" && !isOfLast) {
      this.acks.noteStale();
      this.#noteDropped(resourceNames);
      return;
    }
    if (isFirst && request.versionInfo !== "") this.acks.notePast();
    const isAnswer = isOfLast &&
      (this.acks.inFlight !== undefined || errorDetail !== undefined);
    const names = resourceNames === this.#list
      ? this.names
      : this.#namesOf(resourceNames);
    if (this.#dropped.size > 0) this.nacked?.forget(this.#dropped);
    if (isAnswer) this.noteAnswer(errorDetail, names, nowMs);
    this.#list = resourceNames;
    if (resourceNames.length > 0) this.#hasNamed = true;
    const isChanged = this.#setNames(names);
    if (isChanged || isAnswer || isFirst) return;
    // Listeners and clusters were sent whole, and no client waits for them.
    if (!this.isWhole || responseNonce === "") this.#onRepeated(nowMs);
  }

  protected override onSent(body: ResponseBody): void {
    if (this.#isRepeatPending && this.#hasAll(body)) {
      this.#isRepeatPending = false;
    }
  }

  /** Whether a response has all that the client asks for. */
  #hasAll({ resources }: ResponseBody): boolean {
    if (this.isWhole) return true;
    const all = select(this.names.names, this.now).resources;
    return resources.length === all.length;
  }

  /** Clusters were sent again, and each needs its endpoints after that. */
  onParentsSent(clusters: Names): void {
    this.#warming = cutTo(clusters, this.names);
    this.#addExisting(clusters);
  }

  /** Sends again what the client asked for again, when that is due. */
  tick(nowMs: number): void {
    if (!this.#isRepeatPending || nowMs < this.#repeatAfterMs) return;
    this.#isRepeatPending = false;
    this.#repeatAfterMs = nowMs + REPEAT_WAIT_MS;
    if (this.isWhole) this.pending.mustAnswer = true;
    else this.#addExisting(this.names.names);
  }

  /**
   * A stale request has no effect, except that the client has dropped the names
   * that it does not list: a later request for them counts as new.
   */
  #noteDropped(list: readonly string[]): void {
    if (list === this.#list || this.names.isWildcard) return;
    const dropped = addedNames(this.#namesOf(list), this.names);
    this.#dropped = union(this.#dropped, dropped);
  }

  /** @returns Whether the client asks for something else than before. */
  #setNames(names: NameSet): boolean {
    const before = this.names;
    const again = this.#dropped;
    this.#dropped = NO_NAMES;
    if (names === before && again.size === 0) return false;
    this.names = names;
    if (this.sent === undefined) return true; // All of it is pending then.
    const isWildcardNew = names.isWildcard && !before.isWildcard;
    const added = union(addedNames(before, names), cutTo(again, names));
    if (!isWildcardNew && added.size === 0) return true;
    this.pending.mustAnswer ||= this.isWhole;
    this.answer(isWildcardNew ? sharedNamesOf(this.now) : added);
    return true;
  }

  /** An empty list is the wildcard, until the client has named anything. */
  #namesOf(list: readonly string[]): NameSet {
    if (list.length > 0) return nameSetOfList(list, this.isWhole);
    return this.isWhole && !this.#hasNamed ? EVERYTHING : NOTHING_NAMED;
  }

  /**
   * The client repeats a request. Envoy does so for endpoints when their cluster
   * has changed, with a nonce that it has answered before, and answers the
   * response about clusters only when it has received the endpoints.
   */
  #onRepeated(nowMs: number): void {
    this.pending.isAwaited = true;
    const warming = cutTo(this.#warming, this.names);
    this.#warming = NO_NAMES;
    if (warming.size > 0) return this.#addExisting(warming);
    this.#isRepeatPending = true;
    this.tick(nowMs);
  }

  #addExisting(names: Names): void {
    const asked = cutTo(names, this.names);
    if (asked.size === 0) return;
    this.addPending(namesOfList(select(asked, this.now).resources));
  }

  protected override firstPending(now: ByName): Names {
    this.pending.isAwaited = true;
    this.pending.mustAnswer = this.isWhole && !this.names.isEmpty;
    return this.names.isWildcard ? sharedNamesOf(now) : this.names.names;
  }

  protected override compose(names: Names, pending: Names): Selection {
    return this.isWhole
      ? this.#composeWhole()
      : this.#composeSome(names, pending);
  }

  #composeWhole(): Selection {
    const { names, now, nacked, held } = this;
    const asked = names.isWildcard ? sharedNamesOf(now) : names.names;
    const { resources } = select(asked, now);
    const patches = new Map<string, Resource | undefined>();
    for (const name of nacked?.names ?? []) {
      const resource = names.covers(name) ? now.get(name) : undefined;
      if (resource === undefined) continue;
      const taken = nacked!.isRetried(resource)
        ? resource
        : this.acks.acked(resource);
      if (taken !== resource) patches.set(name, taken);
    }
    for (const resource of held?.resources ?? []) {
      const { name } = resource;
      if (names.covers(name) && !now.has(name)) patches.set(name, resource);
    }
    if (patches.size === 0) return select(asked, now);
    return selectionOf(patched(resources, patches), []);
  }

  #composeSome(names: Names, pending: Names): Selection {
    const selection = select(names, this.now);
    if (this.nacked === undefined) return selection;
    return selectionOf(this.sendableOf(selection.resources, pending), []);
  }
}
