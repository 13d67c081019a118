/**
 * Sets of names that many clients have in common: changed names, cut to what a
 * client asked for, joined with its pending names.
 *
 * Each result is the same object for the same arguments, so that whatever is
 * made of it is made once too.
 *
 * @module
 */

import type { Resource } from "../../../proto/xds/resource.ts";
import { type ByName, PairMemo } from "../view/view.ts";
import type { NameSet } from "./name_set.ts";

export type Names = ReadonlySet<string>;

export const NO_NAMES: Names = new Set();

const joined = new PairMemo<Names, Names, Names>((a, b) => {
  const [large, small] = a.size >= b.size ? [a, b] : [b, a];
  let all: Set<string> | undefined;
  for (const name of small) {
    if (!large.has(name)) (all ??= new Set(large)).add(name);
  }
  return all ?? large;
});

/** Names of either. */
export function union(a: Names, b: Names): Names {
  if (a.size === 0 || a === b) return b;
  if (b.size === 0) return a;
  return joined.of(a, b);
}

const cut = new PairMemo<Names, NameSet, Names>(intersect);

/** Those of `names` that the client asked for. */
export function cutTo(names: Names, asked: NameSet): Names {
  if (names.size === 0 || asked.isWildcard) return names;
  if (names === asked.names) return names;
  if (asked.names.size === 0) return NO_NAMES;
  return asked.isOwn ? intersect(names, asked) : cut.of(names, asked);
}

function intersect(names: Names, asked: NameSet): Names {
  const found = new Set<string>();
  for (const name of names) if (asked.names.has(name)) found.add(name);
  if (found.size === 0) return NO_NAMES;
  return found.size === names.size ? names : found;
}

const added = new PairMemo<NameSet, NameSet, Names>((before, after) => {
  const names = new Set<string>();
  for (const name of after.names) if (!before.names.has(name)) names.add(name);
  return names.size === 0
    ? NO_NAMES
    : names.size === after.names.size
    ? after.names
    : names;
});

/** Names in `after` that `before` did not name, wildcard or not. */
export function addedNames(before: NameSet, after: NameSet): Names {
  return before === after ? NO_NAMES : added.of(before, after);
}

const keys = new WeakMap<ByName, Names>();

/** The names of a state. */
export function sharedNamesOf(resources: ByName): Names {
  let names = keys.get(resources);
  if (names === undefined) {
    keys.set(resources, names = new Set(resources.keys()));
  }
  return names;
}

/** Whether `names` is what {@linkcode sharedNamesOf} returns for a state. */
export function areAllOf(names: Names, resources: ByName): boolean {
  return keys.get(resources) === names;
}

const listed = new WeakMap<readonly Resource[], Names>();

/** {@linkcode namesOfList} returns `names` for `resources` from now on. */
export function rememberNames(
  resources: readonly Resource[],
  names: Names,
): void {
  listed.set(resources, names);
}

/** The names of a response. */
export function namesOfList(resources: readonly Resource[]): Names {
  if (resources.length === 0) return NO_NAMES;
  let names = listed.get(resources);
  if (names === undefined) {
    listed.set(resources, names = new Set(resources.map(({ name }) => name)));
  }
  return names;
}
