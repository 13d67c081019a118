/**
 * The view of one audience, made of what each service has for it.
 *
 * @module
 */

import type { Endpoint } from "../../../catalog/model.ts";
import type { Snapshot } from "../../../catalog/snapshot.ts";
import {
  type Resource,
  RESOURCE_KINDS,
  type ResourceKind,
} from "../../../proto/xds/resource.ts";
import type { View } from "../view.ts";
import type { Audience } from "./audience.ts";
import { settleClaims } from "./settle_claims.ts";
import type { ServiceResources, Unserved } from "./service_resources.ts";
import type { Shelf } from "./shelf.ts";

/** Of services that nobody spoke of endpoints for; always the same. */
export const NO_ENDPOINTS: readonly Endpoint[] = Object.freeze([]);

/** A resource in the place of the one before. */
interface Replacement {
  readonly before: Resource;
  readonly after: Resource;
}

/** See the module description. */
export class AudienceView {
  readonly #shelf: Shelf;
  /** By service, of those that may be seen. */
  readonly #resources = new Map<string, ServiceResources>();
  #view: View = NOTHING;
  /** Claims that others have a better right to. */
  #conflicts: readonly Unserved[] = [];
  #unserved: readonly Unserved[] | undefined;

  constructor(readonly audience: Audience, shelf: Shelf) {
    this.#shelf = shelf;
  }

  get view(): View {
    return this.#view;
  }

  /** What the view is made of. */
  get inUse(): Iterable<ServiceResources> {
    return this.#resources.values();
  }

  get unserved(): readonly Unserved[] {
    return this.#unserved ??= [
      ...[...this.#resources.values()].flatMap(({ unserved }) => unserved),
      ...this.#conflicts,
    ].sort((a, b) =>
      a.service < b.service ? -1 : a.service > b.service ? 1 : 0
    );
  }

  /** @param touched Services that are not what they were; maybe others, too. */
  take(snapshot: Snapshot, touched: Iterable<string>): void {
    const replacements: Replacement[] = [];
    let isOnlyEndpoints = true;
    for (const key of touched) {
      if (!this.audience.visible.sees(key)) continue;
      const before = this.#resources.get(key);
      const after = this.#resourcesOf(key, snapshot);
      if (before === after) continue;
      this.#unserved = undefined;
      if (after === undefined) this.#resources.delete(key);
      else this.#resources.set(key, after);
      isOnlyEndpoints &&= before !== undefined && after !== undefined &&
        collectReplacements(before, after, replacements);
    }
    if (!isOnlyEndpoints) this.#settle();
    else if (replacements.length > 0) this.#replaceEndpoints(replacements);
  }

  #resourcesOf(key: string, snapshot: Snapshot): ServiceResources | undefined {
    const service = snapshot.services.get(key);
    if (service === undefined) return undefined;
    const endpoints = snapshot.endpoints.get(key) ?? NO_ENDPOINTS;
    return this.#shelf.resourcesOf(key, { service, endpoints }, this.audience);
  }

  #settle(): void {
    const { resources, conflicts } = settleClaims(this.#resources);
    this.#conflicts = conflicts;
    this.#view = viewOf(this.#view, resources);
  }

  #replaceEndpoints(replacements: readonly Replacement[]): void {
    const endpoints = new Map(this.#view.resources.endpoints);
    for (const { before, after } of replacements) {
      // Another service may have the better right to the name.
      if (endpoints.get(after.name) === before) {
        endpoints.set(after.name, after);
      }
    }
    this.#view = viewOf(this.#view, { ...this.#view.resources, endpoints });
  }
}

/**
 * What happens most: endpoints come and go, and all else stays.
 *
 * @returns Whether it is nothing but that.
 */
function collectReplacements(
  { claims: before }: ServiceResources,
  { claims: after }: ServiceResources,
  into: Replacement[],
): boolean {
  if (before.length !== after.length) return false;
  for (const [index, claim] of after.entries()) {
    const old = before[index]!;
    if (claim === old) continue;
    const isSamePlace = claim.resource.kind === "endpoints" &&
      old.resource.kind === "endpoints" &&
      claim.resource.name === old.resource.name && claim.rank === old.rank;
    if (!isSamePlace) return false;
    into.push({ before: old.resource, after: claim.resource });
  }
  return true;
}

type ByKind = View["resources"];

const NOTHING: View = Object.freeze({
  resources: Object.freeze({
    cluster: new Map(),
    endpoints: new Map(),
    listener: new Map(),
    route: new Map(),
  }),
});

/** With the maps, or the whole view, of before where they say the same. */
function viewOf(before: View, resources: ByKind): View {
  const kept = Object.fromEntries(
    RESOURCE_KINDS.map((kind) => [
      kind,
      isSame(before, resources, kind)
        ? before.resources[kind]
        : resources[kind],
    ]),
  ) as ByKind;
  const isAllSame = RESOURCE_KINDS.every((kind) =>
    kept[kind] === before.resources[kind]
  );
  return isAllSame && before !== NOTHING
    ? before
    : Object.freeze({ resources: Object.freeze(kept) });
}

function isSame(before: View, after: ByKind, kind: ResourceKind): boolean {
  const old = before.resources[kind];
  const now = after[kind];
  if (old === now) return true;
  if (old.size !== now.size) return false;
  for (const [name, resource] of now) {
    if (old.get(name) !== resource) return false;
  }
  return true;
}
