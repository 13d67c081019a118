/**
 * What a proxy tells about the discovery server that it follows. Plain data that
 * survives JSON.
 *
 * @module
 */

import type { AdsKindStatus } from "../../ads/ads_kind.ts";
import type { AdsState } from "../../ads/ads_connection.ts";
import type { DiscoveryMode } from "../../../proto/xds/discovery.ts";
import type { ResourceKind } from "../../../proto/xds/resource.ts";

export interface DiscoveryStatus {
  readonly node: string;
  readonly mode: DiscoveryMode;
  readonly state: AdsState["kind"];
  /** `ip:port` of the server that is followed. */
  readonly server?: string;
  /** Why none is. */
  readonly problem?: string;
  /** Streams on which a server has spoken, since the start. */
  readonly streams: number;
  readonly kinds: Readonly<Partial<Record<ResourceKind, AdsKindStatus>>>;
  /** From when what is served is, if a server has not answered yet. */
  readonly recalledFrom?: string;
  /** The file that keeps it, and why it does not. */
  readonly kept?: { readonly path: string; readonly problem?: string };
}
