/**
 * Those who lay claim to one thing, the one with the best right first: the same
 * whatever the order in which they came, so that a restart changes nothing for
 * anybody.
 *
 * Nearly everything is claimed once, and then the claim alone stands for it.
 *
 * @module
 */

import type { Claim } from "./service_resources.ts";
import { firstAt } from "./sorted_names.ts";

/** Several claims, or one where there were several. */
export class Contest {
  readonly claims: Claim[] = [];
  /** Who had it when that was last looked at. */
  settled: Claim | undefined;

  constructor(first: Claim) {
    this.claims.push(first);
    this.settled = first;
  }

  add(claim: Claim): void {
    this.claims.splice(this.#placeOf(claim), 0, claim);
  }

  remove(claim: Claim): void {
    const at = this.#placeOf(claim);
    if (this.claims[at] === claim) this.claims.splice(at, 1);
  }

  #placeOf(claim: Claim): number {
    const { claims } = this;
    return firstAt(claims.length, (at) => !isBefore(claims[at]!, claim));
  }
}

/** By what is claimed. */
export class Contests {
  readonly #all = new Map<string, Claim | Contest>();

  /** Who has it. */
  holderOf(thing: string): Claim | undefined {
    const one = this.#all.get(thing);
    return one instanceof Contest ? one.claims[0] : one;
  }

  /** Where several lay, or laid, claim to it. */
  contestOf(thing: string): Contest | undefined {
    const one = this.#all.get(thing);
    return one instanceof Contest ? one : undefined;
  }

  add(thing: string, claim: Claim): void {
    const one = this.#all.get(thing);
    if (one === undefined) this.#all.set(thing, claim);
    else if (one instanceof Contest) one.add(claim);
    else {
      const contest = new Contest(one);
      contest.add(claim);
      this.#all.set(thing, contest);
    }
  }

  remove(thing: string, claim: Claim): void {
    const one = this.#all.get(thing);
    if (one === claim) this.#all.delete(thing);
    if (!(one instanceof Contest)) return;
    one.remove(claim);
    if (one.claims.length === 0) this.#all.delete(thing);
  }
}

/** The lowest rank, then the first in the order of services. */
function isBefore(a: Claim, b: Claim): boolean {
  if (a.rank !== b.rank) return a.rank < b.rank;
  return a.service === b.service ? a.order < b.order : a.service < b.service;
}
