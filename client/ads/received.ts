/**
 * What a client of xDS makes of what it hears: the types around
 * `ads_client.ts`. Pure data.
 *
 * @module
 */

import type { ReceivedResource } from "../../proto/xds/discovery.ts";
import type { ResourceKind } from "../../proto/xds/resource.ts";

/** Other resources that one is of no use without. */
export interface Need {
  readonly kind: ResourceKind;
  readonly name: string;
}

/** What a resource was found to say. */
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
 * Reads a resource, and says whether it can be used.
 *
 * @throws {RefusedResource} It is refused alone; what was held by its name
 *   stays.
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

/** Something that is other than it was. */
export interface AdsChange<T> {
  readonly kind: ResourceKind;
  readonly name: string;
  /** Absent: it is gone, or was found not to exist. */
  readonly held?: Held<T>;
}
