/**
 * What a client of xDS makes of received resources: the types around
 * `ads_client.ts`. Pure data.
 *
 * @module
 */

import type { ReceivedResource } from "../../proto/xds/discovery.ts";
import type { ResourceKind } from "../../proto/xds/resource.ts";

/** Another resource without which one is of no use. */
export interface Need {
  readonly kind: ResourceKind;
  readonly name: string;
}

/** The content of a resource, and what it needs. */
export interface UsableResource<T> {
  readonly content: T;
  /** Asked for as long as the resource is held. */
  readonly needs: readonly Need[];
}

/** A resource that cannot be used. The message goes on after its name. */
export class RefusedResource extends Error {
  override readonly name = "RefusedResource";
}

/**
 * Reads a resource, and decides whether it can be used.
 *
 * @throws {RefusedResource} It is refused alone; the resource before stays.
 */
export type ResourceReader<T> = (
  kind: ResourceKind,
  resource: ReceivedResource,
) => UsableResource<T>;

/** A resource that a client has. */
export interface Held<T> {
  readonly name: string;
  readonly version: string;
  /** The message, encoded. */
  readonly value: Uint8Array;
  readonly content: T;
  readonly needs: readonly Need[];
}

/** A resource that changed. */
export interface AdsChange<T> {
  readonly kind: ResourceKind;
  readonly name: string;
  /** Absent: it is removed, or does not exist. */
  readonly held?: Held<T>;
}
