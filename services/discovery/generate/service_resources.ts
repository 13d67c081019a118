/**
 * The resources of one service for one group of clients, as claims; and messages as
 * resources: encoded, and with a version made of their content and of nothing else.
 *
 * @module
 */

import { createHash } from "node:crypto";
import { encodeAny, encodeNamesakes } from "../../../proto/xds/any.ts";
import type { MessageKind } from "../../../proto/xds/message_kind.ts";
import {
  ApiVersion,
  type ConfigSource,
} from "../../../proto/xds/xds_messages.ts";
import type { Resource, ResourceKind } from "../../../proto/xds/resource.ts";
import {
  RESOURCE_MESSAGES,
  type ResourceMessages,
} from "../../../proto/xds/resource_messages.ts";
import type { Endpoint, Service } from "../../catalog/model/model.ts";
import type { Variant } from "./client_group.ts";

/** "The stream that this resource came by": gRPC refuses other sources. */
export const ADS: ConfigSource = {
  ads: {},
  resourceApiVersion: ApiVersion.V3,
};

/** 128 bits, as hexadecimal digits. */
const VERSION_LENGTH = 32;

/**
 * Makes a resource.
 *
 * @param clusters Those that it leads to.
 */
export function resourceOf<Kind extends ResourceKind>(
  kind: Kind,
  message: ResourceMessages[Kind],
  clusters?: readonly string[],
): Resource {
  const codec: MessageKind<ResourceMessages[Kind]> = RESOURCE_MESSAGES[kind];
  return resource(kind, nameOf(message), encodeAny(codec, message), clusters);
}

/**
 * Makes listeners that differ in their name alone: encoded once but for the name.
 *
 * @param names None of them is empty.
 * @param message Without a name.
 * @returns In the order of `names`.
 */
export function namesakesOf(
  names: readonly string[],
  message: Omit<ResourceMessages["listener"], "name">,
): readonly Resource[] {
  return encodeNamesakes(RESOURCE_MESSAGES.listener, names, message)
    .map((any, index) => resource("listener", names[index]!, any));
}

function resource(
  kind: ResourceKind,
  name: string,
  any: Uint8Array,
  clusters?: readonly string[],
): Resource {
  const version = createHash("sha256").update(any).digest("hex")
    .slice(0, VERSION_LENGTH);
  return Object.freeze(
    clusters === undefined
      ? { kind, name, version, any }
      : { kind, name, version, any, clusters },
  );
}

function nameOf(message: ResourceMessages[ResourceKind]): string {
  const { name, clusterName } = message as
    & ResourceMessages["cluster"]
    & ResourceMessages["endpoints"];
  return name ?? clusterName ?? "";
}

/**
 * A resource, and the name and address that it claims. Several services can
 * claim the same (two listeners on one address, two services of one gRPC name);
 * the lowest rank gets it, and among equals the first service in their order.
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

/** All that a service is for a group. */
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

/**
 * Made at first use and not while modules load, because most commands never
 * speak xDS.
 */
export function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => made ??= make();
}
