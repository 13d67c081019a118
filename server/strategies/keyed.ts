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
export function keyedStrategy<
  C extends Candidate,
  List extends CandidateList<C>,
>(
  name: StrategyName,
  newList: () => List,
  keysOf: (identifiers: Identifiers) => readonly string[],
  keyOf: (text: string) => string = nameKey,
): Strategy<C, List> {
  const index = new Map<string, List>();
  const keys = ({ peer }: C) => new Set(keysOf(peer.identifiers).map(keyOf));
  const list = (host: string) => index.get(keyOf(host));
  return {
    name,
    add(candidate) {
      const found = keys(candidate);
      for (const key of found) {
        let list = index.get(key);
        if (list === undefined) index.set(key, list = newList());
        list.add(candidate);
      }
      return found.size > 0;
    },
    remove(candidate) {
      const found = keys(candidate);
      for (const key of found) {
        const list = index.get(key);
        list?.remove(candidate);
        if (list?.all.length === 0) index.delete(key);
      }
      return found.size > 0;
    },
    list,
    find: (host) => list(host)?.all ?? [],
  };
}
