/**
 * The resources of each service as they were made last, so that they are made
 * once for all audiences that are told the same of it, and stay the objects that
 * they were while they say the same.
 *
 * @module
 */

import type { Resource } from "../../../proto/xds/resource.ts";
import {
  type Audience,
  connectText,
  type Variant,
  variantFor,
} from "./audience.ts";
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
export class Shelf {
  readonly #generate: Generate;
  /** By service, then by variant. */
  readonly #made = new Map<string, Map<string, Made>>();

  constructor(generate: Generate) {
    this.#generate = generate;
  }

  /**
   * What `audience` is told of a service. The same object for as long as that
   * stays the same, whatever became of the service.
   *
   * @param key `namespace/name`.
   */
  resourcesOf(
    key: string,
    input: ServiceInput,
    audience: Audience,
  ): ServiceResources {
    let variants = this.#made.get(key);
    if (variants === undefined) this.#made.set(key, variants = new Map());
    const variant = variantFor(input.service, input.endpoints, audience);
    const name = variantKey(variant);
    const known = variants.get(name);
    if (known !== undefined && isOf(known, input)) return known.resources;
    const made = this.#generate(input, variant);
    const resources = shared(made, known?.resources, variants.values());
    if (known !== undefined && resources === known.resources) {
      known.input = input;
    } else variants.set(name, { input, resources });
    return resources;
  }

  /** Forgets a service. */
  drop(key: string): void {
    this.#made.delete(key);
  }

  /** Forgets whatever is not in use. */
  keepOnly(used: ReadonlySet<ServiceResources>): void {
    for (const [key, variants] of this.#made) {
      for (const [name, { resources }] of variants) {
        if (!used.has(resources)) variants.delete(name);
      }
      if (variants.size === 0) this.#made.delete(key);
    }
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
  siblings: IteratorObject<Made>,
): ServiceResources {
  const others = [...siblings.take(SIBLINGS_MAX)];
  if (before === undefined && others.length === 0) return made;
  const resources = new Map<string, Resource>();
  const learn = ({ claims }: ServiceResources) => {
    for (const { resource } of claims) resources.set(idOf(resource), resource);
  };
  for (const { resources } of others) learn(resources);
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
