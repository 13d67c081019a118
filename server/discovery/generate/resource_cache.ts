/**
 * The resources of each service as they were made last, so that they are made
 * once for all groups that are told the same of it, and stay the objects that
 * they were while they say the same.
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
  /** What it was made of last. */
  input: ServiceInput;
  readonly resources: ServiceResources;
}

/**
 * Variants that are asked for what they have alike: they are as many as nodes
 * with proxies of their own, and nearly all of it any two have alike.
 */
const SIBLINGS_MAX = 4;

/** See the module description. */
export class ResourceCache {
  readonly #generate: Generate;
  /** By variant, then by service: what nobody is told any more goes at once. */
  readonly #made = new Map<string, Map<string, Made>>();

  constructor(generate: Generate) {
    this.#generate = generate;
  }

  /**
   * What `group` is told of a service. The same object for as long as that
   * stays the same, whatever became of the service.
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
    let made = this.#made.get(name);
    if (made === undefined) this.#made.set(name, made = new Map());
    const known = made.get(key);
    if (known !== undefined && isOf(known, input)) return known.resources;
    const resources = shared(
      this.#generate(input, variant),
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

  /** Forgets what none of `groups` may be told. */
  keepOnly(groups: Iterable<ClientGroup>): void {
    const used = new Set<string>();
    for (const group of groups) {
      for (const variant of variantsOf(group)) used.add(variantKey(variant));
    }
    for (const name of this.#made.keys()) {
      if (!used.has(name)) this.#made.delete(name);
    }
  }

  /** Some of what there is of a service. */
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

/** `made` of objects that are there already, wherever they say the same. */
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
  // Last, since what clients of this variant have is what must stay.
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
