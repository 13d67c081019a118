/**
 * The version of what a client should have of one kind. It is made of that and
 * of nothing else, so two clients that should have the same show the same version,
 * in either protocol, after a restart and at another server: a client that lags is
 * seen at a glance.
 *
 * @module
 */

import { ResourceMap } from "../view/resource_map.ts";
import type { ByName } from "../view/view.ts";
import { type ContentSum, contentVersion, sumOf } from "../view/content_sum.ts";
import type { NameSet } from "./name_set.ts";
import { PairMemo } from "../view/pair_memo.ts";

const wholes = new WeakMap<ByName, string>();

/**
 * The version of what `now` has for clients that ask for `names`. For a stream's
 * own set of names, which is large, it is the version of the whole state: another
 * one would be computed for each client, and such clients ask for nearly all.
 */
export function stateVersionOf(names: NameSet, now: ByName): string {
  return names.isWildcard || names.isOwn || asksForAll.of(names, now)
    ? versionOfAll(now)
    : versionsOfSome.of(names, now);
}

function versionOfAll(now: ByName): string {
  let version = wholes.get(now);
  if (version === undefined) {
    wholes.set(now, version = contentVersion(sumOfAll(now)));
  }
  return version;
}

function sumOfAll(now: ByName): ContentSum {
  return now instanceof ResourceMap ? now.contentSum() : sumOf(now.values());
}

const asksForAll = new PairMemo<NameSet, ByName, boolean>(({ names }, now) => {
  if (names.size < now.size) return false;
  for (const name of now.keys()) if (!names.has(name)) return false;
  return true;
});

const versionsOfSome = new PairMemo<NameSet, ByName, string>(
  ({ names }, now) => {
    const found = function* () {
      for (const name of names) {
        const resource = now.get(name);
        if (resource !== undefined) yield resource;
      }
    };
    return contentVersion(sumOf(found()));
  },
);
