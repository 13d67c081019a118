/**
 * Which service gets a name or an address that several claim, kept up to date
 * at the cost of what changes.
 *
 * A name goes to the claim with the best right to it, if that claim also has
 * the best right to the address that it needs, if it needs one. A change marks
 * the names and addresses that it concerns, and `settling` decides those, a few
 * at a time.
 *
 * Claims to one name or address stand in the order of their rights, which does
 * not depend on when they came, so a restart changes no outcome. Nearly every
 * name has one claim, and is then stored as that claim alone.
 *
 * Reading order: `put`, `settling`, `take`.
 *
 * @module
 */

import {
  byKind,
  type Resource,
  RESOURCE_KINDS,
  type ResourceKind,
} from "../../../proto/xds/resource.ts";
import { ResourceMap, type ResourceMapDraft } from "../view/resource_map.ts";
import type { Claim, ServiceResources, Unserved } from "./service_resources.ts";

/** All resources, by kind and name. */
export type ByKind = Readonly<
  Record<ResourceKind, ReadonlyMap<string, Resource>>
>;

/** Names and addresses that are decided in one step. */
const STEP = 32;

const NONE: ReadonlySet<Claim> = new Set();

/** See the module description. */
export class ClaimsLedger {
  readonly #resources = new Map<string, ServiceResources>();
  readonly #names = byKind(() => new ClaimIndex());
  readonly #addresses = new ClaimIndex();
  readonly #drafts: Record<ResourceKind, ResourceMapDraft> = byKind(() =>
    ResourceMap.EMPTY.draft()
  );
  // What `settling` has to decide.
  readonly #undecided = byKind(() => new Set<string>());
  readonly #undecidedAddresses = new Set<string>();
  readonly #undecidedServices = new Set<string>();
  /** By service; only services that lost a claim. */
  readonly #unserved = new Map<string, readonly Unserved[]>();
  #unservedList: readonly Unserved[] | undefined = [];

  /** @param after Nothing: the service is gone, or may not be seen. */
  put(service: string, after: ServiceResources | undefined): void {
    const before = this.#resources.get(service);
    if (before === after) return;
    if (after === undefined) this.#resources.delete(service);
    else this.#resources.set(service, after);
    const old = before === undefined ? NONE : new Set(before.claims);
    const now = before === undefined ? NONE : new Set(after?.claims);
    for (const claim of old) if (!now.has(claim)) this.#remove(claim);
    for (const claim of after?.claims ?? []) {
      if (!old.has(claim)) this.#add(claim);
    }
    this.#undecidedServices.add(service);
  }

  /** Decides what changed, in steps; nothing else may change it meanwhile. */
  *settling(): Generator<void, void, void> {
    let count = 0;
    for (const address of this.#undecidedAddresses) {
      this.#undecidedAddresses.delete(address);
      this.#settleAddress(address);
      if (++count % STEP === 0) yield;
    }
    for (const kind of RESOURCE_KINDS) {
      for (const name of this.#undecided[kind]) {
        this.#undecided[kind].delete(name);
        this.#settleName(kind, name);
        if (++count % STEP === 0) yield;
      }
    }
    for (const service of this.#undecidedServices) {
      this.#undecidedServices.delete(service);
      this.#settleService(service);
      if (++count % STEP === 0) yield;
    }
  }

  /** Whether `settling` has something to do. */
  get hasUndecided(): boolean {
    return this.#undecidedAddresses.size + this.#undecidedServices.size > 0 ||
      RESOURCE_KINDS.some((kind) => this.#undecided[kind].size > 0);
  }

  /** The decisions: the same maps as long as none is written. */
  take(): ByKind {
    return byKind((kind) => this.#drafts[kind].finish());
  }

  /** The unserved claims, in the order of services. */
  takeUnserved(): readonly Unserved[] {
    return this.#unservedList ??= [...this.#unserved]
      .sort(([a], [b]) => a < b ? -1 : 1)
      .flatMap(([, unserved]) => unserved);
  }

  #add(claim: Claim): void {
    const { resource: { kind, name }, address } = claim;
    this.#names[kind].add(name, claim);
    if (address !== undefined) {
      this.#addresses.add(address, claim);
      this.#undecidedAddresses.add(address);
    }
    const isAlone = address === undefined &&
      this.#names[kind].conflictOf(name) === undefined;
    if (isAlone) this.#drafts[kind].set(name, claim.resource);
    else this.#undecided[kind].add(name);
  }

  #remove(claim: Claim): void {
    const { resource: { kind, name }, address } = claim;
    this.#names[kind].remove(name, claim);
    this.#undecided[kind].add(name);
    if (address === undefined) return;
    this.#addresses.remove(address, claim);
    this.#undecidedAddresses.add(address);
  }

  /** The names of the claims that lost and won the address are decided again. */
  #settleAddress(address: string): void {
    const conflict = this.#addresses.conflictOf(address);
    if (conflict === undefined) return;
    const before = conflict.settled;
    const [after] = conflict.claims;
    if (before === after) return;
    conflict.settled = after;
    for (const claim of [before, after]) {
      if (claim === undefined) continue;
      const { kind, name } = claim.resource;
      this.#undecided[kind].add(name);
    }
    this.#noteHolder(conflict.claims, before, after);
  }

  #settleName(kind: ResourceKind, name: string): void {
    const holder = this.#names[kind].holderOf(name);
    const isFree = holder?.address === undefined ||
      this.#addresses.holderOf(holder.address) === holder;
    this.#drafts[kind].set(name, isFree ? holder?.resource : undefined);
    const conflict = this.#names[kind].conflictOf(name);
    if (conflict === undefined || conflict.settled === holder) return;
    const before = conflict.settled;
    conflict.settled = holder;
    this.#noteHolder(conflict.claims, before, holder);
  }

  /** The sentences about the losing services name the winner. */
  #noteHolder(
    claims: readonly Claim[],
    before: Claim | undefined,
    after: Claim | undefined,
  ): void {
    if (before?.service === after?.service) return;
    for (const { service } of claims) this.#undecidedServices.add(service);
  }

  #settleService(service: string): void {
    const resources = this.#resources.get(service);
    const now = resources === undefined ? [] : this.#unservedOf(resources);
    const before = this.#unserved.get(service) ?? [];
    const isSame = now.length === before.length &&
      now.every(({ reason }, index) => reason === before[index]!.reason);
    if (isSame) return;
    this.#unservedList = undefined;
    if (now.length === 0) this.#unserved.delete(service);
    else this.#unserved.set(service, now);
  }

  #unservedOf({ claims, unserved }: ServiceResources): readonly Unserved[] {
    const all = [...unserved];
    for (const claim of claims) {
      const { resource, address, service, whenLost, whenHeld } = claim;
      if (whenLost === undefined && whenHeld === undefined) continue;
      let holder = this.#names[resource.kind].holderOf(resource.name)!;
      if (holder === claim && address !== undefined) {
        holder = this.#addresses.holderOf(address)!;
      }
      if (holder !== claim) {
        if (whenLost === undefined) continue;
        all.push({ service, reason: `${whenLost} ${holder.service}` });
      } else if (whenHeld !== undefined) {
        all.push({ service, reason: whenHeld });
      }
    }
    return all;
  }
}

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

  /** The winning claim. */
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

/**
 * The index of the first of `count` sorted places where `is` holds; `count` if
 * there is none.
 */
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
