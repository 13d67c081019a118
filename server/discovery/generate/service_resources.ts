/**
 * What becomes of one service for one group.
 *
 * @module
 */

import type { Endpoint, Service } from "../../../catalog/model/model.ts";
import type { Resource } from "../../../proto/xds/resource.ts";
import type { Variant } from "./client_group.ts";

/**
 * A resource, and what it lays claim to. Several services can lay claim to one
 * thing (two listeners on one address, two services of one gRPC name); who has
 * the lowest rank gets it, then who comes first in the order of services.
 */
export interface Claim {
  /** Whose it is: `namespace/name`. */
  readonly service: string;
  readonly resource: Resource;
  readonly rank: number;
  /** Its place among the service's claims. */
  readonly order: number;
  /** Besides its name, an address that only one listener can have. */
  readonly address?: string;
  /** What to tell people when another gets it; who that is is put behind it. */
  readonly whenLost?: string;
  /** What to tell people when nobody has a better right to it. */
  readonly whenHeld?: string;
}

/** Something of a service that an group is not served. */
export interface Unserved {
  /** `namespace/name`. */
  readonly service: string;
  /** What of it, why, and what to do: `port 80: …`. */
  readonly reason: string;
}

/** See the module description. */
export interface ServiceResources {
  readonly claims: readonly Claim[];
  readonly unserved: readonly Unserved[];
}

/** What resources are made of, and nothing else. */
export interface ServiceInput {
  readonly service: Service;
  readonly endpoints: readonly Endpoint[];
}

/**
 * Makes the resources of one service.
 *
 * @param variant Says all of the group that may make a difference.
 */
export type Generate = (
  input: ServiceInput,
  variant: Variant,
) => ServiceResources;
