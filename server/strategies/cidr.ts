/**
 * Strategy `cidr`: the agents that announced the longest prefix around the
 * target's address. (Upstream parses `cidr=` and uses it for nothing.)
 *
 * Each node of a cluster may announce the prefix of its pods, so routes are as
 * many as agents. A search costs one look for each length of which there is a
 * prefix, of which clusters have a few; there are 33 and 129 at most.
 *
 * @module
 */

import {
  type IpAddress,
  type IpPrefix,
  maskedAddress,
  parseIpPrefix,
} from "../../proto/peer/ip_address.ts";
import { addressOf } from "../../proto/peer/normal_form.ts";
import type { Candidate, CandidateList, Strategy } from "./strategy.ts";

/** Makes the strategy `cidr`. */
export function cidrStrategy<
  C extends Candidate,
  List extends CandidateList<C>,
>(newList: () => List): Strategy<C, List> {
  const families = new Map(
    [4, 16].map((bytes) => [bytes, new Family<C, List>(newList)]),
  );
  const familyOf = (address: IpAddress) => families.get(address.length)!;
  const list = (host: string) => {
    const address = addressOf(host);
    return address && familyOf(address).find(address);
  };
  return {
    name: "cidr",
    add(candidate) {
      const prefixes = prefixesOf(candidate);
      for (const prefix of prefixes) {
        familyOf(prefix.address).add(prefix, candidate);
      }
      return prefixes.length > 0;
    },
    remove(candidate) {
      const prefixes = prefixesOf(candidate);
      for (const prefix of prefixes) {
        familyOf(prefix.address).remove(prefix, candidate);
      }
      return prefixes.length > 0;
    },
    list,
    find: (host) => list(host)?.all ?? [],
  };
}

/** Prefixes of IPv4, or those of IPv6. */
class Family<C extends Candidate, List extends CandidateList<C>> {
  /** By length: the agents of each prefix, by its address. */
  readonly #lengths = new Map<number, Map<string, List>>();
  /** The longest first, so that the first match is the answer. */
  #order: readonly number[] = [];

  constructor(private readonly newList: () => List) {}

  add({ address, length }: IpPrefix, candidate: C): void {
    let prefixes = this.#lengths.get(length);
    if (prefixes === undefined) {
      this.#lengths.set(length, prefixes = new Map());
      this.#sort();
    }
    const key = address.join();
    let list = prefixes.get(key);
    if (list === undefined) prefixes.set(key, list = this.newList());
    list.add(candidate);
  }

  remove({ address, length }: IpPrefix, candidate: C): void {
    const prefixes = this.#lengths.get(length);
    const key = address.join();
    const list = prefixes?.get(key);
    list?.remove(candidate);
    if (list?.all.length === 0) prefixes!.delete(key);
    if (prefixes?.size !== 0) return;
    this.#lengths.delete(length);
    this.#sort();
  }

  find(address: IpAddress): List | undefined {
    for (const length of this.#order) {
      const key = maskedAddress(address, length).join();
      const list = this.#lengths.get(length)!.get(key);
      if (list !== undefined) return list;
    }
    return undefined;
  }

  #sort(): void {
    this.#order = [...this.#lengths.keys()].sort((a, b) => b - a);
  }
}

/** What is not a prefix was refused before. */
function prefixesOf({ peer }: Candidate): IpPrefix[] {
  return peer.identifiers.cidr.flatMap((text) => parseIpPrefix(text) ?? []);
}
