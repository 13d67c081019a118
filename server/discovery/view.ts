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

/** See the module description. */
export interface View {
  readonly resources: Readonly<
    Record<ResourceKind, ReadonlyMap<string, Resource>>
  >;
}

/** By kind: names whose resource is new, differs or is gone. */
export type ViewChanges = Readonly<Record<ResourceKind, ReadonlySet<string>>>;

/** Views that changed from one to another are few: clients move together. */
const known = new WeakMap<View, WeakMap<View, ViewChanges>>();

/** What a client that was told `before` has to hear about `after`. */
export function changesBetween(before: View, after: View): ViewChanges {
  let byAfter = known.get(before);
  if (byAfter === undefined) known.set(before, byAfter = new WeakMap());
  let changes = byAfter.get(after);
  if (changes === undefined) {
    byAfter.set(after, changes = compare(before, after));
  }
  return changes;
}

function compare(before: View, after: View): ViewChanges {
  return Object.freeze(Object.fromEntries(
    RESOURCE_KINDS.map((kind) => [
      kind,
      compareMaps(before.resources[kind], after.resources[kind]),
    ]),
  )) as ViewChanges;
}

function compareMaps(
  before: ReadonlyMap<string, Resource>,
  after: ReadonlyMap<string, Resource>,
): ReadonlySet<string> {
  const changed = new Set<string>();
  if (before === after) return changed;
  for (const [name, resource] of after) {
    if (before.get(name) !== resource) changed.add(name);
  }
  for (const name of before.keys()) {
    if (!after.has(name)) changed.add(name);
  }
  return changed;
}
