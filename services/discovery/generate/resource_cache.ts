/**
 * The resources of each service as they were generated last: they are generated
 * once for all groups that receive the same, and stay the same objects for as long
 * as their content is the same.
 *
 * @module
 */

import type { Resource } from "../../../proto/xds/resource.ts";
import {
  type ClientGroup,
  connectText,
  type Variant,
  variantFor,
  variantsOf,
} from "./client_group.ts";
import type {
  Claim,
  Generate,
  ServiceInput,
  ServiceResources,
} from "./service_resources.ts";

interface Made {
  /** The input that it was made of last. */
  input: ServiceInput;
  readonly resources: ServiceResources;
}

/**
 * Variants that are searched for equal resources: there are as many as nodes with
 * proxies of their own, and any two have nearly all resources in common.
 */
const SIBLINGS_MAX = 4;

/** See the module description. */
export class ResourceCache {
  /** By variant, then by service: unused variants are dropped as a whole. */
  readonly #made = new Map<string, Map<string, Made>>();

  constructor(private readonly generate: Generate) {}

  /**
   * The resources of a service for a group. The same object for as long as the
   * content is the same, even when the service has changed.
   *
   * @param key `namespace/name`.
   */
  resourcesOf(
    key: string,
    input: ServiceInput,
    group: ClientGroup,
  ): ServiceResources {
    const variant = variantFor(input.service, input.endpoints, group);
    const name = variantKey(variant);
    const made = this.#made.getOrInsertComputed(name, () => new Map());
    const known = made.get(key);
    if (known !== undefined && isOf(known, input)) return known.resources;
    const resources = shared(
      this.generate(input, variant),
      known?.resources,
      this.#siblings(key),
    );
    if (known !== undefined && resources === known.resources) {
      known.input = input;
    } else made.set(key, { input, resources });
    return resources;
  }

  /** Forgets a service. */
  drop(key: string): void {
    for (const made of this.#made.values()) made.delete(key);
  }

  /** Forgets resources that no client of `groups` may receive. */
  keepOnly(groups: Iterable<ClientGroup>): void {
    const used = new Set<string>();
    for (const group of groups) {
      for (const variant of variantsOf(group)) used.add(variantKey(variant));
    }
    for (const name of this.#made.keys()) {
      if (!used.has(name)) this.#made.delete(name);
    }
  }

  /** Resources of a service for some other variants. */
  #siblings(key: string): readonly ServiceResources[] {
    const found: ServiceResources[] = [];
    for (const made of this.#made.values()) {
      const one = made.get(key);
      if (one !== undefined) found.push(one.resources);
      if (found.length === SIBLINGS_MAX) break;
    }
    return found;
  }
}

function isOf({ input }: Made, { service, endpoints }: ServiceInput): boolean {
  return input.service === service && input.endpoints === endpoints;
}

function variantKey({ form, connectProxy, zone = "" }: Variant): string {
  const connect = connectProxy === undefined ? "" : connectText(connectProxy);
  return `${form} ${connect} ${zone}`;
}

/** `made` with known objects wherever the content is the same. */
function shared(
  made: ServiceResources,
  before: ServiceResources | undefined,
  siblings: readonly ServiceResources[],
): ServiceResources {
  if (before === undefined && siblings.length === 0) return made;
  const resources = new Map<string, Resource>();
  const learn = ({ claims }: ServiceResources) => {
    for (const { resource } of claims) resources.set(idOf(resource), resource);
  };
  for (const one of siblings) learn(one);
  // Last, so that the objects of this variant win: its clients have those.
  if (before !== undefined) learn(before);
  const claims = made.claims.map((claim, index) => {
    const resource = resources.get(idOf(claim.resource)) ?? claim.resource;
    const old = before?.claims[index];
    return old !== undefined && old.resource === resource &&
        old.rank === claim.rank && old.order === claim.order &&
        old.address === claim.address &&
        old.whenLost === claim.whenLost && old.whenHeld === claim.whenHeld
      ? old
      : resource === claim.resource
      ? claim
      : { ...claim, resource };
  });
  return before !== undefined && isSameList(claims, before.claims) &&
      isSameList(textsOf(made), textsOf(before))
    ? before
    : { claims, unserved: made.unserved };
}

function idOf({ kind, name, version }: Resource): string {
  return `${kind} ${version} ${name}`;
}

function textsOf({ unserved }: ServiceResources): readonly string[] {
  return unserved.map(({ reason }) => reason);
}

function isSameList<T extends Claim | string>(
  a: readonly T[],
  b: readonly T[],
): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index]);
}
