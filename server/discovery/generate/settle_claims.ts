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

interface Holder {
  readonly service: string;
  readonly claim: Claim;
}

/** @param services By `namespace/name`, in any order. */
export function settleClaims(
  services: ReadonlyMap<string, ServiceResources>,
): Settled {
  const inOrder = [...services.keys()].sort();
  const holders = new Map<string, Holder>();
  const eachClaim = function* (): Generator<Holder> {
    for (const service of inOrder) {
      for (const claim of services.get(service)!.claims) {
        yield { service, claim };
      }
    }
  };
  for (const each of eachClaim()) {
    for (const thing of thingsOf(each.claim)) {
      const holder = holders.get(thing);
      // Of equals the first.
      if (holder === undefined || each.claim.rank < holder.claim.rank) {
        holders.set(thing, each);
      }
    }
  }
  const resources = Object.fromEntries(
    RESOURCE_KINDS.map((kind) => [kind, new Map<string, Resource>()]),
  ) as Record<ResourceKind, Map<string, Resource>>;
  const conflicts: Unserved[] = [];
  for (const { service, claim } of eachClaim()) {
    const lost = thingsOf(claim)
      .find((thing) => holders.get(thing)!.claim !== claim);
    const { resource, whenLost, whenHeld } = claim;
    if (lost === undefined) {
      resources[resource.kind].set(resource.name, resource);
      if (whenHeld !== undefined) conflicts.push({ service, reason: whenHeld });
    } else if (whenLost !== undefined) {
      const { service: other } = holders.get(lost)!;
      conflicts.push({ service, reason: `${whenLost} ${other}` });
    }
  }
  return { resources, conflicts };
}

/** What a claim lays claim to. */
function thingsOf(
  { resource: { kind, name }, address }: Claim,
): readonly string[] {
  const resource = `${kind} ${name}`;
  return address === undefined ? [resource] : [resource, `at ${address}`];
}
