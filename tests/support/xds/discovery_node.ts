/**
 * Nodes of xDS, as clients say them.
 *
 * @module
 */

import type { DiscoveryNode } from "../../../proto/xds/discovery.ts";

/** One that says nothing but what is given; its id is `client`. */
export function discoveryNode(
  said: Partial<DiscoveryNode> = {},
): DiscoveryNode {
  return {
    id: "client",
    cluster: "",
    metadata: {},
    locality: { region: "", zone: "", subZone: "" },
    userAgentName: "",
    userAgentVersion: "",
    clientFeatures: [],
    ...said,
  };
}
