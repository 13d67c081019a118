/**
 * All resources that one group of clients may receive at one moment, by kind
 * and name.
 *
 * A view never changes. The next view shares every resource that stays as it
 * is, so the difference of two views is found once, by identity, and shared by
 * all clients that had the first and get the second.
 *
 * @module
 */

import { PairMemo } from "../../catalog/model/memo.ts";
import type { Resource, ResourceKind } from "../../../proto/xds/resource.ts";
import { noteChanges, ResourceMap } from "./resource_map.ts";

/** See the module description. */
export interface View {
  readonly resources: Readonly<
    Record<ResourceKind, ReadonlyMap<string, Resource>>
  >;
}

/** All of one kind, by name. */
export type ByName = ReadonlyMap<string, Resource>;

const NOTHING: ReadonlySet<string> = new Set();

/** Clients move together, so the pairs of kinds that are compared are few. */
const changes = new PairMemo<ByName, ByName, ReadonlySet<string>>(
  (before, after) => {
    const changed =
      before instanceof ResourceMap && after instanceof ResourceMap
        ? after.changedSince(before)
        : changedIn(before, after);
    return changed.size === 0 ? NOTHING : changed;
  },
);

/**
 * Names whose resource is new, differs or is gone; the same set for the same
 * pair. A resource that was generated again with the same content is not one.
 */
export function changedNames(
  before: ByName,
  after: ByName,
): ReadonlySet<string> {
  return before === after ? NOTHING : changes.of(before, after);
}

function changedIn(before: ByName, after: ByName): Set<string> {
  const changed = new Set<string>();
  noteChanges(before, after, changed);
  return changed;
}
