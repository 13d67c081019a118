/**
 * The content of a response: the resources of some names, as they are now.
 *
 * Clients with the same names on the way between the same states get the same
 * arrays, so that a response is selected, hashed and encoded once for a thousand
 * of them.
 *
 * @module
 */

import type { ResponseBody } from "../../../proto/xds/discovery.ts";
import {
  type Resource,
  type ResourceKind,
  TYPE_URLS,
} from "../../../proto/xds/resource.ts";
import { memoized, PairMemo } from "../../catalog/model/memo.ts";
import type { ByName } from "../view/view.ts";
import {
  areAllOf,
  type Names,
  type NameSet,
  NO_NAMES,
  rememberNames,
} from "./name_set.ts";
import { contentVersion, ResourceMap } from "../view/resource_map.ts";

/**
 * A larger response is sent in parts, where the protocol allows it: gRPC clients
 * accept 4 MiB. Bytes.
 */
export const RESPONSE_PART_BYTES_MAX: number = 3 * 1024 * 1024;

/** The framing of a resource in a response, beside its name and version. */
const FRAME_BYTES = 32;

/** Some names, looked up. */
export interface Selection {
  readonly resources: readonly Resource[];
  /** Names without a resource. */
  readonly missing: readonly string[];
}

const NOTHING_MISSING: readonly string[] = Object.freeze([]);

/**
 * Kept for as long as a client is sent it; otherwise a client with names of its
 * own would keep all its resources in memory until something changes.
 */
const selected = new PairMemo<Names, ByName, { known?: WeakRef<Selection> }>(
  () => ({}),
);

/** The resources of `names`, in their order. */
export function select(names: Names, resources: ByName): Selection {
  const last = selected.of(names, resources);
  let selection = last.known?.deref();
  if (selection === undefined) {
    selection = lookUp(names, resources);
    last.known = new WeakRef(selection);
  }
  return selection;
}

function lookUp(names: Names, resources: ByName): Selection {
  if (names.size > 0 && areAllOf(names, resources)) {
    const all = [...resources.values()];
    rememberNames(all, names);
    return selectionOf(all, []);
  }
  const found: Resource[] = [];
  const missing: string[] = [];
  for (const name of names) {
    const resource = resources.get(name);
    if (resource === undefined) missing.push(name);
    else found.push(resource);
  }
  return selectionOf(found, missing);
}

/** For content that only one client is sent. */
export function selectionOf(
  resources: readonly Resource[],
  missing: readonly string[],
): Selection {
  return Object.freeze({
    resources,
    missing: missing.length === 0 ? NOTHING_MISSING : missing,
  });
}

/** The part of a selection for one response, and the names left. */
export interface Part {
  readonly selection: Selection;
  readonly rest: Names;
}

/** The part that fits into one response; a larger resource is sent alone. */
export const firstPart: (selection: Selection) => Part = memoized(divide);

function divide(selection: Selection): Part {
  const { resources, missing } = selection;
  let bytes = 0;
  let count = 0;
  for (const { any, name, version } of resources) {
    bytes += any.length + bytesOf(name) + version.length + FRAME_BYTES;
    if (bytes > RESPONSE_PART_BYTES_MAX && count > 0) {
      return {
        selection: selectionOf(resources.slice(0, count), NOTHING_MISSING),
        rest: new Set([
          ...resources.slice(count).map(({ name }) => name),
          ...missing,
        ]),
      };
    }
    count++;
  }
  for (const [index, name] of missing.entries()) {
    bytes += bytesOf(name);
    if (bytes > RESPONSE_PART_BYTES_MAX && index > 0) {
      return {
        selection: selectionOf(resources, missing.slice(0, index)),
        rest: new Set(missing.slice(index)),
      };
    }
  }
  return { selection, rest: NO_NAMES };
}

/** The limit in bytes, whichever characters it has. */
function bytesOf(name: string): number {
  return name.length * 3;
}

/**
 * By name: the resource that is sent in place of another one, or that it is
 * omitted.
 */
export type Patches = ReadonlyMap<string, Resource | undefined>;

const patchedLists = memoized((_resources: readonly Resource[]) =>
  new Map<string, readonly Resource[]>()
);

/**
 * A whole state with some resources exchanged, omitted or added. Clients with the
 * same patches get the same array.
 */
export function patched(
  resources: readonly Resource[],
  patches: Patches,
): readonly Resource[] {
  const key = [...patches].map(([name, resource]) =>
    `${name.length}:${name}${resource?.version ?? "-"}`
  ).sort().join(" ");
  return patchedLists(resources)
    .getOrInsertComputed(key, () => patch(resources, patches));
}

function patch(
  resources: readonly Resource[],
  patches: Patches,
): readonly Resource[] {
  const list = resources.filter(({ name }) => !patches.has(name));
  for (const resource of patches.values()) {
    if (resource !== undefined) list.push(resource);
  }
  return list;
}

/** {@linkcode contentVersion} of a list that is asked for again and again. */
export const contentOf: (resources: readonly Resource[]) => string = memoized(
  contentVersion,
);

/** How a response reports names that do not exist. */
export type MissingForm = "removed" | "absent" | "unsaid";

/** By content: the last response with it. */
const bodies = new PairMemo<
  readonly Resource[],
  readonly string[],
  { last?: ResponseBody }
>(() => ({}));

/**
 * The response with a selection. Clients with the same content get the same
 * object, encoded once.
 *
 * @param version Clients receive it, and return it.
 */
export function bodyOf(
  kind: ResourceKind,
  { resources, missing }: Selection,
  how: MissingForm,
  version: string,
): ResponseBody {
  const removed = how === "removed" ? missing : NOTHING_MISSING;
  const absent = how === "absent" && missing.length > 0 ? missing : undefined;
  const known = bodies.of(resources, absent ?? removed);
  const typeUrl = TYPE_URLS[kind];
  const isSame = known.last?.version === version &&
    known.last.typeUrl === typeUrl && known.last.absent === absent;
  if (isSame) return known.last!;
  return known.last = Object.freeze({
    ...{ typeUrl, resources, version, removed },
    ...absent && { absent },
  });
}

/**
 * The version of `now` for clients that request `names`. A stream's own set of
 * names is large, and gets the version of the whole state: such clients request
 * nearly all names, and a version for each client would be costly.
 */
export function stateVersionOf(names: NameSet, now: ByName): string {
  return names.isWildcard || names.isOwn || asksForAll.of(names, now)
    ? versionOfAll(now)
    : versionsOfSome.of(names, now);
}

const versionOfAll = memoized((now: ByName): string =>
  now instanceof ResourceMap ? now.contentVersion : contentVersion(now.values())
);

const asksForAll = new PairMemo<NameSet, ByName, boolean>(({ names }, now) => {
  if (names.size < now.size) return false;
  for (const name of now.keys()) if (!names.has(name)) return false;
  return true;
});

const versionsOfSome = new PairMemo<NameSet, ByName, string>(
  ({ names }, now) =>
    contentVersion([...names].flatMap((name) => now.get(name) ?? [])),
);
