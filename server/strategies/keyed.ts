/**
 * Strategies that compare a target's host with what agents announced:
 * `destHost` (names and addresses) and `uid`.
 *
 * Unlike upstream's, both are compared in their normal form (`normal_form.ts`),
 * so `NODE1` and `0:0:0:0:0:0:0:1` find their agents.
 *
 * @module
 */

import type { Identifiers } from "../../proto/peer/identifiers.ts";
import { nameKey } from "../../proto/peer/normal_form.ts";
import type { StrategyName } from "../options.ts";
import type { Candidate, CandidateList, Strategy } from "./strategy.ts";

/**
 * @param keysOf Which identifiers of an agent count.
 * @param keyOf The spelling under which they are indexed.
 */
export function keyedStrategy<C extends Candidate>(
  name: StrategyName,
  newList: () => CandidateList<C>,
  keysOf: (identifiers: Identifiers) => readonly string[],
  keyOf: (text: string) => string = nameKey,
): Strategy<C> {
  const index = new Map<string, CandidateList<C>>();
  const keys = (link: C) => new Set(keysOf(link.peer.identifiers).map(keyOf));
  return {
    name,
    add(link) {
      for (const key of keys(link)) {
        let list = index.get(key);
        if (list === undefined) index.set(key, list = newList());
        list.add(link);
      }
    },
    remove(link) {
      for (const key of keys(link)) {
        const list = index.get(key);
        list?.remove(link);
        if (list?.all.length === 0) index.delete(key);
      }
    },
    find: (host) => index.get(keyOf(host))?.all ?? [],
    *links() {
      for (const list of index.values()) yield* list.all;
    },
  };
}
