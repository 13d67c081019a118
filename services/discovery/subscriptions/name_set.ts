/**
 * The names that a client subscribes to, and maybe the wildcard.
 *
 * Sets with the same content are the same object, in whatever order clients
 * list their names, so a response for one client is found again for the next.
 * Sets never change, except a large one that its client changes bit by bit,
 * which would be copied for every change: that one belongs to its stream alone.
 *
 * Operations on sets (the changed names, those among them that a client
 * requested, those joined with its pending names) return the same object for
 * the same arguments, so that later steps are done once, too.
 *
 * @module
 */

import { GrpcError, StatusCode } from "../../../proto/grpc/status.ts";
import { PairMemo } from "../../catalog/model/memo.ts";
import type { ByName } from "../view/view.ts";
import type { Resource } from "../../../proto/xds/resource.ts";

/** Names that one stream may ask for, of one kind. As many as services. */
export const NAMES_PER_KIND_MAX = 20_000;

/** UTF-16 units of one name; far above any that is served. */
export const RESOURCE_NAME_LENGTH_MAX = 1_024;

/** A larger set that is changed bit by bit is not shared. */
export const SHARED_NAMES_MAX = 1_024;

/** The name that means all resources. */
export const WILDCARD = "*";

/** See the module description. */
export class NameSet {
  /** Characters of all names. Follows the names of a stream's own. */
  length: number;

  /** Only `nameSetOf` and `build` make one. */
  constructor(
    /** Without the wildcard. */
    readonly names: ReadonlySet<string>,
    readonly isWildcard: boolean,
    /** Only the stream that owns it may change it. */
    readonly isOwn: boolean,
    length: number = lengthOf(names),
  ) {
    this.length = length;
  }

  get isEmpty(): boolean {
    return !this.isWildcard && this.names.size === 0;
  }

  covers(name: string): boolean {
    return this.isWildcard || this.names.has(name);
  }
}

function lengthOf(names: ReadonlySet<string>): number {
  let length = 0;
  for (const name of names) length += name.length;
  return length;
}

/** Sets by content; a set stays here for as long as a stream uses it. */
const shared = new Map<string, WeakRef<NameSet>>();

const collected = new FinalizationRegistry<string>((key) => {
  if (shared.get(key)?.deref() === undefined) shared.delete(key);
});

/** The set with this content. */
function nameSetOf(
  names: ReadonlySet<string>,
  isWildcard: boolean,
): NameSet {
  const key = keyOf(names, isWildcard);
  const there = shared.get(key)?.deref();
  if (there !== undefined) return there;
  const set = new NameSet(names, isWildcard, false);
  shared.set(key, new WeakRef(set));
  collected.register(set, key);
  return set;
}

/** No name, and no wildcard. */
export const NOTHING_NAMED: NameSet = nameSetOf(new Set(), false);

/** The wildcard, and nothing by name. */
export const EVERYTHING: NameSet = nameSetOf(new Set(), true);

const plain = new WeakMap<readonly string[], NameSet>();
const withWildcard = new WeakMap<readonly string[], NameSet>();

/**
 * The set of a list of names; found by the list's identity when it was seen
 * before.
 *
 * @param knowsWildcard Whether `*` is one in this kind; else it is a name.
 * @throws {GrpcError} RESOURCE_EXHAUSTED when it is too large.
 */
export function nameSetOfList(
  list: readonly string[],
  knowsWildcard: boolean,
): NameSet {
  const memo = knowsWildcard ? withWildcard : plain;
  let set = memo.get(list);
  if (set === undefined) {
    const names = new Set(list);
    const isWildcard = knowsWildcard && names.delete(WILDCARD);
    checkNames(names, names.size);
    memo.set(list, set = nameSetOf(names, isWildcard));
  }
  return set;
}

const grown = new PairMemo<NameSet, NameSet, NameSet>((set, more) => {
  const names = new Set(set.names);
  for (const name of more.names) names.add(name);
  return build(names, set.isWildcard || more.isWildcard);
});

/**
 * `set` and `more`.
 *
 * @throws {GrpcError} RESOURCE_EXHAUSTED when that is too large.
 */
export function plusNames(set: NameSet, more: NameSet): NameSet {
  if (more === NOTHING_NAMED || set === more) return set;
  if (set === NOTHING_NAMED) return more;
  if (!set.isOwn) {
    const sum = set.names.size + more.names.size;
    // Another stream must not find a stream's own set.
    if (sum <= SHARED_NAMES_MAX) return grown.of(set, more);
    return build(
      new Set([...set.names, ...more.names]),
      set.isWildcard || more.isWildcard,
    );
  }
  const names = set.names as Set<string>;
  for (const name of more.names) {
    if (names.has(name)) continue;
    names.add(name);
    set.length += name.length;
  }
  checkNames(NOTHING_NAMED.names, names.size);
  return more.isWildcard && !set.isWildcard
    ? new NameSet(names, true, true, set.length)
    : set;
}

/** `set` without `less`; names that are not in it do not matter. */
export function minusNames(set: NameSet, less: NameSet): NameSet {
  if (less === NOTHING_NAMED || set === NOTHING_NAMED) return set;
  const isWildcard = set.isWildcard && !less.isWildcard;
  if (!set.isOwn) {
    const names = new Set(set.names);
    for (const name of less.names) names.delete(name);
    return build(names, isWildcard);
  }
  const names = set.names as Set<string>;
  for (const name of less.names) {
    if (names.delete(name)) set.length -= name.length;
  }
  return isWildcard === set.isWildcard
    ? set
    : new NameSet(names, isWildcard, true, set.length);
}

function build(names: Set<string>, isWildcard: boolean): NameSet {
  checkNames(NOTHING_NAMED.names, names.size);
  return names.size > SHARED_NAMES_MAX
    ? new NameSet(names, isWildcard, true)
    : nameSetOf(names, isWildcard);
}

function checkNames(fresh: ReadonlySet<string>, size: number): void {
  if (size > NAMES_PER_KIND_MAX) {
    throw tooMuch(
      `${size} names of one kind, at most ${NAMES_PER_KIND_MAX} are served on one stream`,
    );
  }
  for (const { length } of fresh) {
    if (length <= RESOURCE_NAME_LENGTH_MAX) continue;
    throw tooMuch(
      `a name of ${length} characters, at most ${RESOURCE_NAME_LENGTH_MAX} are served`,
    );
  }
}

function tooMuch(what: string): GrpcError {
  return new GrpcError(
    StatusCode.RESOURCE_EXHAUSTED,
    `The subscription has ${what}; ask for less, or on more streams`,
  );
}

/** Names may have any character, so each is prefixed with its length. */
function keyOf(names: ReadonlySet<string>, isWildcard: boolean): string {
  let key = isWildcard ? "*" : "";
  for (const name of [...names].sort()) key += `${name.length}:${name}`;
  return key;
}

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
  return keys.getOrInsertComputed(resources, () => new Set(resources.keys()));
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
  return listed.getOrInsertComputed(
    resources,
    () => new Set(resources.map(({ name }) => name)),
  );
}
