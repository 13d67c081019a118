/**
 * Claims to one name or address, the one with the best right first: the order
 * does not depend on when they came, so a restart changes nothing for anybody.
 *
 * Nearly everything is claimed once, and then the claim alone stands for it.
 *
 * @module
 */

import type { Claim } from "./service_resources.ts";

/** Several claims to one thing, or one where there were several. */
export class Conflict {
  readonly claims: Claim[] = [];
  /** The holder when the conflict was settled last. */
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

/** All claims, by the name or address that is claimed. */
export class ClaimIndex {
  readonly #all = new Map<string, Claim | Conflict>();

  /** The claim that has it. */
  holderOf(thing: string): Claim | undefined {
    const one = this.#all.get(thing);
    return one instanceof Conflict ? one.claims[0] : one;
  }

  /** Present where several claims are, or were. */
  conflictOf(thing: string): Conflict | undefined {
    const one = this.#all.get(thing);
    return one instanceof Conflict ? one : undefined;
  }

  add(thing: string, claim: Claim): void {
    const one = this.#all.get(thing);
    if (one === undefined) this.#all.set(thing, claim);
    else if (one instanceof Conflict) one.add(claim);
    else {
      const conflict = new Conflict(one);
      conflict.add(claim);
      this.#all.set(thing, conflict);
    }
  }

  remove(thing: string, claim: Claim): void {
    const one = this.#all.get(thing);
    if (one === claim) this.#all.delete(thing);
    if (!(one instanceof Conflict)) return;
    one.remove(claim);
    if (one.claims.length === 0) this.#all.delete(thing);
  }
}

/** The lowest rank first, then the order of services. */
function isBefore(a: Claim, b: Claim): boolean {
  if (a.rank !== b.rank) return a.rank < b.rank;
  return a.service === b.service ? a.order < b.order : a.service < b.service;
}

/** The first of `count` sorted places where `is` holds; `count` if none is. */
export function firstAt(
  count: number,
  is: (at: number) => boolean,
): number {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = low + high >>> 1;
    if (is(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
