/**
 * Who gets what several services lay claim to: the same whatever the order in
 * which they came, so that a restart changes nothing for anybody.
 *
 * @module
 */

import {
  type Resource,
  RESOURCE_KINDS,
  type ResourceKind,
} from "../../../proto/xds/resource.ts";
import type { Claim, ServiceResources, Unserved } from "./service_resources.ts";

/** What came of it. */
export interface Settled {
  /** In the order of services. */
  readonly resources: Readonly<
    Record<ResourceKind, ReadonlyMap<string, Resource>>
  >;
  /** What people have to know of it. */
  readonly conflicts: readonly Unserved[];
}

/** @param services By `namespace/name`, in any order. */
export function settleClaims(
  services: ReadonlyMap<string, ServiceResources>,
): Settled {
  const inOrder = [...services.keys()].sort()
    .map((service) => services.get(service)!);
  const names = mapsByKind<Claim>();
  const addresses = new Map<string, Claim>();
  for (const { claims } of inOrder) {
    for (const claim of claims) {
      const { resource: { kind, name }, address } = claim;
      take(names[kind], name, claim);
      if (address !== undefined) take(addresses, address, claim);
    }
  }
  const resources = mapsByKind<Resource>();
  const conflicts: Unserved[] = [];
  for (const { claims } of inOrder) {
    for (const claim of claims) {
      const { resource, address, service, whenLost, whenHeld } = claim;
      let holder = names[resource.kind].get(resource.name)!;
      if (holder === claim && address !== undefined) {
        holder = addresses.get(address)!;
      }
      if (holder === claim) {
        resources[resource.kind].set(resource.name, resource);
        if (whenHeld !== undefined) {
          conflicts.push({ service, reason: whenHeld });
        }
      } else if (whenLost !== undefined) {
        const reason = `${whenLost} ${holder.service}`;
        conflicts.push({ service, reason });
      }
    }
  }
  return { resources, conflicts };
}

/** Of equals the first. */
function take(held: Map<string, Claim>, thing: string, claim: Claim): void {
  const holder = held.get(thing);
  if (holder === undefined || claim.rank < holder.rank) held.set(thing, claim);
}

function mapsByKind<T>(): Record<ResourceKind, Map<string, T>> {
  return Object.fromEntries(
    RESOURCE_KINDS.map((kind) => [kind, new Map<string, T>()]),
  ) as Record<ResourceKind, Map<string, T>>;
}
