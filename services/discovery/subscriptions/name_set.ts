/**
 * The names that a client subscribes to, and maybe the wildcard.
 *
 * Sets with the same content are the same object, in whatever order clients list
 * their names, so a response for one client is found again for the next. Sets
 * never change, except a large one that its client changes bit by bit, which
 * would be copied for every change: that one belongs to its stream alone.
 *
 * @module
 */

import { GrpcError, StatusCode } from "../../../proto/grpc/status.ts";
import { PairMemo } from "../view/view.ts";

/** Names that one stream may ask for, of one kind. As many as services. */
export const NAMES_PER_KIND_MAX = 20_000;

/** UTF-16 units of one name; far above any that is served. */
export const RESOURCE_NAME_LENGTH_MAX = 1_024;

/** A larger set that is changed bit by bit is not shared. */
export const SHARED_NAMES_MAX = 1_024;

/** The name that stands for all. */
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
    /** Only the stream that has it may change it. */
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

/** By content; a set is found for as long as a stream uses it. */
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
 * The set that a list of names stands for; found by the list's identity when it
 * was seen before.
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
