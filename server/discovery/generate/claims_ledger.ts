/**
 * Who gets what several services lay claim to, kept at the cost of what changes.
 *
 * A name goes to the claim with the best right to it, if that one also has the
 * best right to the address that it needs, if it needs one. A change marks the
 * things that it is about, and `settling` decides those, a few at a time.
 *
 * Reading order: `put`, `settling`, `take`.
 *
 * @module
 */

import {
  type Resource,
  RESOURCE_KINDS,
  type ResourceKind,
} from "../../../proto/xds/resource.ts";
import { ResourceMap, type ResourceMapDraft } from "../view/resource_map.ts";
import { Contests } from "./contest.ts";
import type { Claim, ServiceResources, Unserved } from "./service_resources.ts";
import { SortedNames } from "./sorted_names.ts";

/** All resources, by kind and name. */
export type ByKind = Readonly<
  Record<ResourceKind, ReadonlyMap<string, Resource>>
>;

/** So many things are decided in one step. */
const STEP = 32;

const NONE: ReadonlySet<Claim> = new Set();

/** See the module description. */
export class ClaimsLedger {
  readonly #resources = new Map<string, ServiceResources>();
  readonly #services = new SortedNames();
  readonly #names = byKind(() => new Contests());
  readonly #addresses = new Contests();
  readonly #drafts: Record<ResourceKind, ResourceMapDraft> = byKind(() =>
    ResourceMap.EMPTY.draft()
  );
  // What is to be decided again.
  readonly #doubtful = byKind(() => new Set<string>());
  readonly #doubtfulAddresses = new Set<string>();
  readonly #doubtfulServices = new Set<string>();
  /** By service; those that have something to tell. */
  readonly #unserved = new Map<string, readonly Unserved[]>();
  readonly #unservedServices = new SortedNames();
  #unservedList: readonly Unserved[] | undefined = [];

  /** @param after Nothing: the service is gone, or may not be seen. */
  put(service: string, after: ServiceResources | undefined): void {
    const before = this.#resources.get(service);
    if (before === after) return;
    if (after === undefined) {
      this.#resources.delete(service);
      this.#services.remove(service);
    } else {
      this.#resources.set(service, after);
      this.#services.add(service);
    }
    const old = before === undefined ? NONE : new Set(before.claims);
    const now = before === undefined ? NONE : new Set(after?.claims);
    for (const claim of old) if (!now.has(claim)) this.#remove(claim);
    for (const claim of after?.claims ?? []) {
      if (!old.has(claim)) this.#add(claim);
    }
    this.#doubtfulServices.add(service);
  }

  /** Decides what is to be decided, in steps; nothing else may happen to it. */
  *settling(): Generator<void, void, void> {
    let count = 0;
    for (const address of this.#doubtfulAddresses) {
      this.#doubtfulAddresses.delete(address);
      this.#settleAddress(address);
      if (++count % STEP === 0) yield;
    }
    for (const kind of RESOURCE_KINDS) {
      for (const name of this.#doubtful[kind]) {
        this.#doubtful[kind].delete(name);
        this.#settleName(kind, name);
        if (++count % STEP === 0) yield;
      }
    }
    for (const service of this.#doubtfulServices) {
      this.#doubtfulServices.delete(service);
      this.#settleService(service);
      if (++count % STEP === 0) yield;
    }
  }

  /** Whether `settling` has something to do. */
  get isDoubtful(): boolean {
    return this.#doubtfulAddresses.size + this.#doubtfulServices.size > 0 ||
      RESOURCE_KINDS.some((kind) => this.#doubtful[kind].size > 0);
  }

  /** What is decided: maps that stay the same while they say the same. */
  take(): ByKind {
    const services = this.#services.all;
    return byKind((kind) => this.#drafts[kind].finish(services));
  }

  /** What people have to know, in the order of services. */
  takeUnserved(): readonly Unserved[] {
    return this.#unservedList ??= this.#unservedServices.all
      .flatMap((service) => this.#unserved.get(service)!);
  }

  #add(claim: Claim): void {
    const { resource: { kind, name }, address } = claim;
    this.#names[kind].add(name, claim);
    if (address !== undefined) {
      this.#addresses.add(address, claim);
      this.#doubtfulAddresses.add(address);
    }
    const isAlone = address === undefined &&
      this.#names[kind].contestOf(name) === undefined;
    if (isAlone) this.#drafts[kind].set(name, claim);
    else this.#doubtful[kind].add(name);
  }

  #remove(claim: Claim): void {
    const { resource: { kind, name }, address } = claim;
    this.#names[kind].remove(name, claim);
    this.#doubtful[kind].add(name);
    if (address === undefined) return;
    this.#addresses.remove(address, claim);
    this.#doubtfulAddresses.add(address);
  }

  /** Who had it and who has it have the name, or have it no longer. */
  #settleAddress(address: string): void {
    const contest = this.#addresses.contestOf(address);
    if (contest === undefined) return;
    const before = contest.settled;
    const [after] = contest.claims;
    if (before === after) return;
    contest.settled = after;
    for (const claim of [before, after]) {
      if (claim === undefined) continue;
      const { kind, name } = claim.resource;
      this.#doubtful[kind].add(name);
    }
    this.#tellOf(contest.claims, before, after);
  }

  #settleName(kind: ResourceKind, name: string): void {
    const holder = this.#names[kind].holderOf(name);
    const isFree = holder?.address === undefined ||
      this.#addresses.holderOf(holder.address) === holder;
    this.#drafts[kind].set(name, isFree ? holder : undefined);
    const contest = this.#names[kind].contestOf(name);
    if (contest === undefined || contest.settled === holder) return;
    const before = contest.settled;
    contest.settled = holder;
    this.#tellOf(contest.claims, before, holder);
  }

  /** What the others are told names the service that has it. */
  #tellOf(
    claims: readonly Claim[],
    before: Claim | undefined,
    after: Claim | undefined,
  ): void {
    if (before?.service === after?.service) return;
    for (const { service } of claims) this.#doubtfulServices.add(service);
  }

  #settleService(service: string): void {
    const resources = this.#resources.get(service);
    const now = resources === undefined ? [] : this.#unservedOf(resources);
    const before = this.#unserved.get(service) ?? [];
    const isSame = now.length === before.length &&
      now.every(({ reason }, index) => reason === before[index]!.reason);
    if (isSame) return;
    this.#unservedList = undefined;
    if (now.length === 0) {
      this.#unserved.delete(service);
      this.#unservedServices.remove(service);
    } else {
      this.#unserved.set(service, now);
      this.#unservedServices.add(service);
    }
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

function byKind<T>(
  make: (kind: ResourceKind) => T,
): Record<ResourceKind, T> {
  return Object.fromEntries(
    RESOURCE_KINDS.map((kind) => [kind, make(kind)]),
  ) as Record<ResourceKind, T>;
}
