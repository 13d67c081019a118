/**
 * The resources of one service for one group of clients.
 *
 * @module
 */

import type { Endpoint, Service } from "../../catalog/model/model.ts";
import type { Resource } from "../../../proto/xds/resource.ts";
import type { Variant } from "./client_group.ts";

/**
 * A resource, and the name and address that it claims. Several services can claim
 * the same (two listeners on one address, two services of one gRPC name); the
 * lowest rank gets it, then the first in the order of services.
 */
export interface Claim {
  /** The service, `namespace/name`. */
  readonly service: string;
  readonly resource: Resource;
  readonly rank: number;
  /** Its place among the service's claims. */
  readonly order: number;
  /** Besides its name, an address that only one listener can have. */
  readonly address?: string;
  /** The sentence for people when another service gets it, without its name. */
  readonly whenLost?: string;
  /** The sentence for people when no other service has a better right to it. */
  readonly whenHeld?: string;
}

/** Something of a service that a group is not served. */
export interface Unserved {
  /** `namespace/name`. */
  readonly service: string;
  /** The port, why, and what to do: `port 80: …`. */
  readonly reason: string;
}

/** See the module description. */
export interface ServiceResources {
  readonly claims: readonly Claim[];
  readonly unserved: readonly Unserved[];
}

/** All that resources are made of. */
export interface ServiceInput {
  readonly service: Service;
  readonly endpoints: readonly Endpoint[];
}

/**
 * Makes the resources of one service.
 *
 * @param variant All of the group that may make a difference.
 */
export type Generate = (
  input: ServiceInput,
  variant: Variant,
) => ServiceResources;
