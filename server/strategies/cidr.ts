/**
 * Strategy `cidr`: the agent that announced the longest prefix around the
 * target's address. (Upstream parses `cidr=` and uses it for nothing.)
 *
 * @module
 */

import {
  type IpPrefix,
  parseIpPrefix,
  prefixContains,
} from "../../proto/peer/ip_address.ts";
import { addressOf } from "../../proto/peer/normal_form.ts";
import type { Candidate, CandidateList, Strategy } from "./strategy.ts";

interface Route<C extends Candidate> {
  readonly prefix: IpPrefix;
  readonly links: CandidateList<C>;
}

/** Makes the strategy `cidr`. */
export function cidrStrategy<C extends Candidate>(
  newList: () => CandidateList<C>,
): Strategy<C> {
  // Longest first, so the first match is the answer. A scan is enough: routes
  // are counted in hundreds, and a dial costs far more than a scan.
  let routes: Route<C>[] = [];
  return {
    name: "cidr",
    add(link) {
      for (const prefix of prefixesOf(link)) {
        let route = routes.find((route) => isSame(route.prefix, prefix));
        if (route === undefined) {
          route = { prefix, links: newList() };
          routes.push(route);
          routes.sort((a, b) => b.prefix.length - a.prefix.length);
        }
        route.links.add(link);
      }
    },
    remove(link) {
      for (const route of routes) route.links.remove(link);
      routes = routes.filter((route) => route.links.all.length > 0);
    },
    find(host) {
      const address = addressOf(host);
      if (address === undefined) return [];
      const route = routes.find(({ prefix }) =>
        prefixContains(prefix, address)
      );
      return route?.links.all ?? [];
    },
    *links() {
      for (const route of routes) yield* route.links.all;
    },
  };
}

/** The link's prefixes, each once; what is not a prefix was refused before. */
function prefixesOf(link: Candidate): IpPrefix[] {
  const prefixes: IpPrefix[] = [];
  for (const text of link.peer.identifiers.cidr) {
    const prefix = parseIpPrefix(text);
    if (prefix === undefined) continue;
    if (!prefixes.some((other) => isSame(other, prefix))) prefixes.push(prefix);
  }
  return prefixes;
}

function isSame(a: IpPrefix, b: IpPrefix): boolean {
  return a.length === b.length && a.address.length === b.address.length &&
    prefixContains(a, b.address);
}
