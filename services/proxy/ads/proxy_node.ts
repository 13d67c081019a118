/**
 * How a node proxy names itself to a discovery server.
 *
 * @module
 */

import { VERSION } from "../../../platform/process/version.ts";
import type { DiscoveryNode } from "../../../proto/xds/discovery.ts";

/** By this an older discovery server knows a node proxy. */
const PROXY_USER_AGENT = "tunnel";

/**
 * What a node proxy names itself to a discovery server.
 *
 * @param id The node's name, or one that begins with it and a slash.
 * @param zone Where it is; empty: nobody knows.
 */
export function proxyNode(id: string, zone: string): DiscoveryNode {
  return {
    id,
    cluster: "",
    metadata: { tunnel: { kind: "service" } },
    locality: { region: "", zone, subZone: "" },
    userAgentName: PROXY_USER_AGENT,
    userAgentVersion: VERSION,
    clientFeatures: [],
  };
}
