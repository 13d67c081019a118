/**
 * Views of the catalog, one for each group of clients in use, kept up to date
 * at the cost of what changed.
 *
 * A service is generated again when it, or the list of its endpoints, is
 * another object than before. Resources with the same content stay the same
 * objects. So the next view differs from the last by identity exactly where
 * clients have to receive something.
 *
 * A view of many services takes longer than a link may wait for its turn, so
 * `preparing` makes it in steps. Until that is done, clients have no view or
 * the last whole one; changes that come meanwhile are included.
 *
 * Reading order: `Views.update`, `Views.preparing`, then `GroupView`.
 *
 * @module
 */

import { EMPTY_SNAPSHOT, type Snapshot } from "../../catalog/snapshot.ts";
import type { View } from "../view/view.ts";
import type { ClientGroup } from "./client_group.ts";
import type {
  Generate,
  ServiceResources,
  Unserved,
} from "./service_resources.ts";
import { ResourceCache } from "./resource_cache.ts";
import type { Endpoint } from "../../catalog/model/model.ts";
import { changedKeys } from "../../catalog/model/plain_data.ts";
import { RESOURCE_KINDS } from "../../../proto/xds/resource.ts";
import { type ByKind, ClaimsLedger } from "./claims_ledger.ts";

/** A group is forgotten after this many updates without a request for it. */
export const IDLE_UPDATES_MAX = 16;

const NOTHING: readonly Unserved[] = Object.freeze([]);

/** See the module description. */
export class Views {
  readonly #cache: ResourceCache;
  readonly #groups = new Map<string, GroupView>();
  #snapshot: Snapshot | undefined;
  #updates = 0;

  /** @param generate `generateService`; tests pass another one. */
  constructor(generate: Generate) {
    this.#cache = new ResourceCache(generate);
  }

  /**
   * Takes the present catalog. Views are made on request, so this costs next to
   * nothing.
   */
  update(snapshot: Snapshot): void {
    if (snapshot === this.#snapshot) return;
    const touched = compare(this.#snapshot ?? EMPTY_SNAPSHOT, snapshot);
    this.#snapshot = snapshot;
    this.#updates++;
    for (const key of touched) {
      if (!snapshot.services.has(key)) this.#cache.drop(key);
    }
    for (const view of this.#groups.values()) view.touch(touched);
    this.#forgetIdle();
  }

  /**
   * Makes the view of `group` as of now, a service or so at a time.
   *
   * @throws {TypeError} Before the first update.
   */
  *preparing(group: ClientGroup): Generator<void, void, void> {
    yield* this.#kept(group).making(() => this.#snapshot!);
  }

  /**
   * The last view that was made for `group`: as of now, unless it is being
   * prepared again.
   *
   * @returns Nothing before the first one was made.
   */
  viewOf(group: ClientGroup): View | undefined {
    return this.#groups.get(group.key)?.made?.view;
  }

  /**
   * What of the services in that view is not served, and why, in the order of
   * services.
   */
  unservedTo(group: ClientGroup): readonly Unserved[] {
    return this.#groups.get(group.key)?.made?.unserved ?? NOTHING;
  }

  /** No client is of these groups, maybe for a long time. */
  forget(keys: Iterable<string>): void {
    for (const key of keys) this.#groups.delete(key);
    this.#keepUsed();
  }

  /** Groups whose views are kept up to date. */
  get groups(): readonly ClientGroup[] {
    return [...this.#groups.values()].map(({ group }) => group);
  }

  #kept(group: ClientGroup): GroupView {
    const snapshot = this.#snapshot;
    if (snapshot === undefined) {
      throw new TypeError("There is no view before the catalog's first update");
    }
    let kept = this.#groups.get(group.key);
    if (kept === undefined) {
      kept = new GroupView(group, this.#cache);
      kept.touch(snapshot.services.keys());
      this.#groups.set(group.key, kept);
    }
    kept.askedAt = this.#updates;
    return kept;
  }

  #forgetIdle(): void {
    let isAnyGone = false;
    for (const [key, { askedAt }] of this.#groups) {
      if (this.#updates - askedAt <= IDLE_UPDATES_MAX) continue;
      this.#groups.delete(key);
      isAnyGone = true;
    }
    if (isAnyGone) this.#keepUsed();
  }

  #keepUsed(): void {
    this.#cache.keepOnly(this.groups);
  }
}

/** Services that changed. */
function compare(before: Snapshot, after: Snapshot): ReadonlySet<string> {
  return new Set([
    ...changedKeys(before.services, after.services),
    ...changedKeys(before.endpoints, after.endpoints),
  ]);
}

/** Of services without a list of endpoints; always the same object. */
const NO_ENDPOINTS: readonly Endpoint[] = Object.freeze([]);

/** A view, and what of its services is not served. */
export interface Made {
  readonly view: View;
  readonly unserved: readonly Unserved[];
}

/**
 * The view of one group of clients, generated one service at a time; it is not
 * shown before it is whole.
 */
export class GroupView {
  readonly #ledger = new ClaimsLedger();
  /** The number of the update when it was asked for. */
  askedAt = 0;
  /** Changed services. */
  readonly #touched = new Set<string>();
  #made: Made | undefined;

  constructor(
    readonly group: ClientGroup,
    private readonly cache: ResourceCache,
  ) {}

  /** The last one that was whole; nothing before the first. */
  get made(): Made | undefined {
    return this.#made;
  }

  touch(services: Iterable<string>): void {
    for (const service of services) this.#touched.add(service);
  }

  /**
   * Generates the resources of changed services, and then a view of the catalog
   * as it is when that ends. Other runs, and `touch`, may come between two steps.
   *
   * @param current The catalog as it is at each step.
   */
  *making(current: () => Snapshot): Generator<void, void, void> {
    while (this.#isTouched) {
      for (const key of this.#touched) {
        this.#touched.delete(key);
        if (!this.group.visible.sees(key)) continue;
        this.#ledger.put(key, this.#resourcesOf(key, current()));
        yield;
      }
      yield* this.#ledger.settling();
    }
    const view = viewOf(this.#made?.view, this.#ledger.take());
    const unserved = this.#ledger.takeUnserved();
    if (this.#made?.view === view && this.#made.unserved === unserved) return;
    this.#made = { view, unserved };
  }

  get #isTouched(): boolean {
    return this.#touched.size > 0 || this.#ledger.hasUndecided;
  }

  #resourcesOf(key: string, snapshot: Snapshot): ServiceResources | undefined {
    const service = snapshot.services.get(key);
    if (service === undefined) return undefined;
    const endpoints = snapshot.endpoints.get(key) ?? NO_ENDPOINTS;
    return this.cache.resourcesOf(key, { service, endpoints }, this.group);
  }
}

function viewOf(before: View | undefined, resources: ByKind): View {
  const isSame = before !== undefined &&
    RESOURCE_KINDS.every((kind) => before.resources[kind] === resources[kind]);
  return isSame ? before : Object.freeze({
    resources: Object.freeze(resources),
  });
}
