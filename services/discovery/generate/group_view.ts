/**
 * The view of one group of clients, generated a service at a time: nobody sees it
 * before it is whole.
 *
 * @module
 */

import type { Endpoint } from "../../catalog/model/model.ts";
import type { Snapshot } from "../../catalog/snapshot.ts";
import { isWholeState, RESOURCE_KINDS } from "../../../proto/xds/resource.ts";
import { ResourceMap } from "../view/resource_map.ts";
import type { View } from "../view/view.ts";
import type { ClientGroup } from "./client_group.ts";
import { type ByKind, ClaimsLedger } from "./claims_ledger.ts";
import type { ServiceResources, Unserved } from "./service_resources.ts";
import type { ResourceCache } from "./resource_cache.ts";

/** Of services without a list of endpoints; always the same object. */
const NO_ENDPOINTS: readonly Endpoint[] = Object.freeze([]);

/** A view, and what of its services is not served. */
export interface Made {
  readonly view: View;
  readonly unserved: readonly Unserved[];
}

/** See the module description. */
export class GroupView {
  readonly #ledger = new ClaimsLedger();
  /** Lists of changed services, and the position in the first list. */
  readonly #lists: (readonly string[])[] = [];
  #at = 0;
  #made: Made | undefined;

  constructor(
    readonly group: ClientGroup,
    private readonly cache: ResourceCache,
  ) {}

  /** The last one that was whole; nothing before the first. */
  get made(): Made | undefined {
    return this.#made;
  }

  /** @param services The changed services; kept, so never change the list. */
  touch(services: readonly string[]): void {
    if (services.length > 0) this.#lists.push(services);
  }

  /**
   * Generates the resources of changed services, and then a view of the catalog
   * as it is when that ends. Other runs, and `touch`, may come between two steps.
   *
   * @param current The catalog as it is at each step.
   */
  *making(current: () => Snapshot): Generator<void, void, void> {
    while (this.#isTouched) {
      for (let key = this.#next(); key !== undefined; key = this.#next()) {
        if (!this.group.visible.sees(key)) continue;
        this.#ledger.put(key, this.#resourcesOf(key, current()));
        yield;
      }
      yield* this.#ledger.settling();
      if (!this.#isTouched) yield* this.#ordering(this.#ledger.take());
    }
    const view = viewOf(this.#made?.view, this.#ledger.take());
    const unserved = this.#ledger.takeUnserved();
    if (this.#made?.view === view && this.#made.unserved === unserved) return;
    this.#made = { view, unserved };
  }

  get #isTouched(): boolean {
    return this.#lists.length > 0 || this.#ledger.hasUndecided;
  }

  /** Clients receive these kinds as a whole: the first response needs the order. */
  *#ordering(resources: ByKind): Generator<void, void, void> {
    for (const kind of RESOURCE_KINDS) {
      const now = resources[kind];
      if (isWholeState(kind) && now instanceof ResourceMap) {
        yield* now.ordering();
      }
    }
  }

  #next(): string | undefined {
    for (;;) {
      const [list] = this.#lists;
      if (list === undefined) return undefined;
      if (this.#at < list.length) return list[this.#at++];
      this.#lists.shift();
      this.#at = 0;
    }
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
