/**
 * An agent that announced one service, as servers remember it.
 *
 * @module
 */

import type { RememberedAgent } from "../../../server/discovery/membership/member_memory.ts";

/** @param state Of its service. */
export function rememberedAgent(
  id: string,
  state: RememberedAgent["state"] = "unready",
  seenMs = 5,
): RememberedAgent {
  const offer = {
    ...{ service: "shop/web", namespace: "shop", name: "web" },
    ...{ port: 80, protocol: "tcp" as const, appProtocol: "" },
    ...{ address: "127.0.0.1", targetPort: 8080 },
  };
  return { id, node: id, offers: [offer], seenMs, state };
}
