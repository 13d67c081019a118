/**
 * Strategies that compare a target's host with what agents announced:
 * `destHost` (names and addresses) and `uid`.
 *
 * Unlike upstream's, names are compared without case and addresses in their
 * canonical spelling, so `NODE1` and `0:0:0:0:0:0:0:1` find their agents.
 *
 * @module
 */

import { canonicalIp } from "../../proto/link/ip_address.ts";
import type { AgentLink, Identifiers } from "../../proto/link/link.ts";
import { LinkList } from "./link_list.ts";
import type { Strategy, StrategyName } from "./strategy.ts";

/** The one spelling under which a host or an identifier is indexed. */
export function hostKey(host: string): string {
  return canonicalIp(host).toLowerCase();
}

/** @param keysOf Which identifiers of an agent count. */
export function keyedStrategy(
  name: StrategyName,
  keysOf: (identifiers: Identifiers) => readonly string[],
): Strategy {
  const index = new Map<string, LinkList>();
  const keys = (link: AgentLink) =>
    new Set(keysOf(link.peer.identifiers).map(hostKey));
  return {
    name,
    add(link) {
      for (const key of keys(link)) {
        let list = index.get(key);
        if (list === undefined) index.set(key, list = new LinkList());
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
    find: (host) => index.get(hostKey(host))?.all ?? [],
    *links() {
      for (const list of index.values()) yield* list.all;
    },
  };
}
