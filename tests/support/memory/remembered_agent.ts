/**
 * An agent that announced one service, as servers remember it.
 *
 * @module
 */

import type { RememberedAgent } from "../../../server/discovery/membership/member_memory.ts";

/** @param state Of its service; absent: nobody is linked to it. */
export function rememberedAgent(
  id: string,
  state?: RememberedAgent["state"],
  seenMs = 5,
): RememberedAgent {
  const offer = {
    ...{ service: "shop/web", namespace: "shop", name: "web" },
    ...{ port: 80, protocol: "tcp" as const, appProtocol: "" },
    ...{ address: "127.0.0.1", targetPort: 8080 },
  };
  const known = { id, node: id, offers: [offer], seenMs };
  return state === undefined ? known : { ...known, state };
}
