/**
 * One kind on a stream of differences (Delta).
 *
 * A request changes what the client asks for, answers a response, or both; a
 * change counts, whichever response the request answers. A name that the client
 * asks for is sent even if it was sent before, and a name that does not exist
 * is sent as removed, so that no client has to wait for it.
 *
 * @module
 */

import type { DeltaRequest } from "../../../proto/xds/discovery.ts";
import {
  isWholeState,
  type ResourceKind,
} from "../../../proto/xds/resource.ts";
import type { ByName } from "../view/view.ts";
import {
  cutTo,
  EVERYTHING,
  minusNames,
  type Names,
  type NameSet,
  nameSetOfList,
  namesOfList,
  NOTHING_NAMED,
  plusNames,
  sharedNamesOf,
  union,
} from "./name_set.ts";
import { select, type Selection, selectionOf } from "./selection.ts";
import { type ClientProfile, KindSubscription } from "./kind_subscription.ts";

/** See the module description. */
export class DeltaSubscription extends KindSubscription {
  /** What the client has from an earlier stream, until the first response. */
  #initial: ReadonlyMap<string, string> | undefined;
  #isKnown = false;
  readonly #knowsWildcard: boolean;
  /**
   * Whether the versions that it says it has are correct. Envoy may name those of
   * endpoints that it has dropped, or that a cluster still waits for
   * (envoy#22418), and is sent them again.
   */
  readonly #isTrusted: boolean;

  constructor(kind: ResourceKind, profile: ClientProfile) {
    super(kind, "delta", profile);
    this.#isTrusted = kind !== "endpoints";
    this.#knowsWildcard = isWholeState(kind);
  }

  /** @throws {GrpcError} RESOURCE_EXHAUSTED when it asks for too much. */
  onRequest(request: DeltaRequest, nowMs: number): void {
    const { responseNonce, errorDetail } = request;
    if (responseNonce !== "" && this.nonce !== "") {
      if (responseNonce === this.nonce) {
        this.noteAnswer(errorDetail, this.names, nowMs);
      } else this.acks.noteStale();
    }
    if (!this.#isKnown) {
      this.#isKnown = true;
      this.#onFirst(request);
      return;
    }
    this.#subscribe(this.#setOf(request.subscribe));
    this.#unsubscribe(this.#setOf(request.unsubscribe));
  }

  /** Clusters were sent again, and each needs its endpoints after that. */
  onParentsSent(clusters: Names): void {
    const asked = cutTo(clusters, this.names);
    if (asked.size === 0) return;
    this.addPending(namesOfList(select(asked, this.now).resources));
    if (!this.isHolding) return;
    const kept = [...asked].filter((name) => this.held!.get(name));
    if (kept.length > 0) this.addPending(new Set(kept));
  }

  #setOf(list: readonly string[]): NameSet {
    return list.length === 0
      ? NOTHING_NAMED
      : nameSetOfList(list, this.#knowsWildcard);
  }

  #onFirst({ subscribe, unsubscribe, initialVersions }: DeltaRequest): void {
    const isAll = subscribe.length === 0 && unsubscribe.length === 0;
    this.names = isAll && this.#knowsWildcard
      ? EVERYTHING
      : minusNames(this.#setOf(subscribe), this.#setOf(unsubscribe));
    if (initialVersions.size > 0) this.#initial = initialVersions;
  }

  #subscribe(more: NameSet): void {
    if (more.isEmpty) return;
    const asked = more.isWildcard ? sharedNamesOf(this.now) : more.names;
    this.names = plusNames(this.names, more);
    if (this.sent === undefined) return; // All of it is pending then.
    if (more.isWildcard) {
      this.pending.mustAnswer = true;
      this.answer(more.names);
    }
    this.answer(asked);
  }

  #unsubscribe(less: NameSet): void {
    if (less.isEmpty) return;
    const { names } = this.names;
    const gone = [...less.names].filter((name) => names.has(name));
    this.names = minusNames(this.names, less);
    if (this.sent === undefined || !this.names.isWildcard) return;
    if (gone.length === 0) return;
    // It cannot know whether the wildcard covers them.
    this.answer(new Set(gone));
  }

  protected override firstPending(now: ByName): Names {
    this.pending.isAwaited = true;
    this.pending.mustAnswer = this.names.isWildcard;
    const initial = this.#initial;
    this.#initial = undefined;
    // A cluster that came on the last stream may still wait for endpoints, and
    // the client asks for them with nothing but the versions that it has.
    const isKnown = initial !== undefined && this.#isTrusted;
    if (isKnown) return this.#differences(now, initial);
    const named = this.names.isOwn
      ? new Set(this.names.names)
      : this.names.names;
    return this.names.isWildcard ? union(sharedNamesOf(now), named) : named;
  }

  /** Names whose version is not the one that the client has. */
  #differences(now: ByName, initial: ReadonlyMap<string, string>): Names {
    const names = new Set<string>();
    for (const name of this.names.names) {
      const version = now.get(name)?.version;
      if (version === undefined || version !== initial.get(name)) {
        names.add(name);
      }
    }
    if (this.names.isWildcard) {
      for (const [name, { version }] of now) {
        if (version !== initial.get(name)) names.add(name);
      }
    }
    for (const name of initial.keys()) {
      if (!now.has(name) && this.names.covers(name)) names.add(name);
    }
    return names;
  }

  protected override compose(names: Names, pending: Names): Selection {
    const { now, held } = this;
    const selection = select(names, now);
    if (this.nacked === undefined && !this.isHolding) return selection;
    const resources = this.sendableOf(selection.resources, pending);
    const missing: string[] = [];
    for (const name of selection.missing) {
      const kept = held?.ackedOf(name);
      if (held?.get(name) === undefined) missing.push(name);
      else if (kept !== undefined && pending.has(name)) resources.push(kept);
    }
    return selectionOf(resources, missing);
  }
}
