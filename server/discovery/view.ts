/**
 * All that one kind of client may be told at one moment: resources by kind and
 * name.
 *
 * A view never changes. The next one shares every resource that stayed as it
 * was, so what differs between two of them is found once, by identity, and
 * shared by all clients that go the same way.
 *
 * @module
 */

import {
  type Resource,
  RESOURCE_KINDS,
  type ResourceKind,
} from "../../proto/xds/resource.ts";
import { ResourceMap } from "./resource_map.ts";

/** See the module description. */
export interface View {
  readonly resources: Readonly<
    Record<ResourceKind, ReadonlyMap<string, Resource>>
  >;
}

/** By kind: names whose resource is new, differs or is gone. */
export type ViewChanges = Readonly<Record<ResourceKind, ReadonlySet<string>>>;

/** All of one kind, by name. */
export type ByName = ReadonlyMap<string, Resource>;

/** Kinds that changed from one to another are few: clients move together. */
const known = new WeakMap<ByName, WeakMap<ByName, ReadonlySet<string>>>();

const NOTHING: ReadonlySet<string> = new Set();

/**
 * Names whose resource is new, differs or is gone; the same set for all who ask.
 * A resource that was made again and says the same is not among them.
 */
export function changedNames(
  before: ByName,
  after: ByName,
): ReadonlySet<string> {
  if (before === after) return NOTHING;
  let byAfter = known.get(before);
  if (byAfter === undefined) known.set(before, byAfter = new WeakMap());
  let changed = byAfter.get(after);
  if (changed === undefined) {
    byAfter.set(after, changed = compare(before, after));
  }
  return changed;
}

/** What a client that was told `before` has to hear about `after`. */
export function changesBetween(before: View, after: View): ViewChanges {
  return Object.fromEntries(
    RESOURCE_KINDS.map((kind) => [
      kind,
      changedNames(before.resources[kind], after.resources[kind]),
    ]),
  ) as ViewChanges;
}

function compare(before: ByName, after: ByName): ReadonlySet<string> {
  const changed = before instanceof ResourceMap && after instanceof ResourceMap
    ? after.changedSince(before)
    : changedIn(before, after);
  return changed.size === 0 ? NOTHING : changed;
}

function changedIn(before: ByName, after: ByName): Set<string> {
  const changed = new Set<string>();
  for (const [name, resource] of after) {
    const old = before.get(name);
    if (old !== resource && old?.version !== resource.version) {
      changed.add(name);
    }
  }
  for (const name of before.keys()) {
    if (!after.has(name)) changed.add(name);
  }
  return changed;
}
