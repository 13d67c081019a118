/**
 * TUN7: services, discovery, and the service proxy.
 *
 * @module
 */

import type { Area } from "./problem.ts";

/** See the module description. */
export const DISCOVERY = {
  TUN701: {
    slug: "source-failed",
    title: "A source of services cannot be followed, or had missed changes",
    means: "What it said before stays in use; it is tried again, and all is " +
      "read again. A server whose source has not answered since the start " +
      "sends clients of discovery to other servers.",
    causes: [
      "etcd, the API server, the URL or the discovery server is away.",
      "The discovery server refuses this node.",
      "The file is gone.",
      "A watch that lost events.",
    ],
    mend: [
      "The line says what was seen. `tunnel status` lists the sources.",
      "`tunnel doctor` on the proxy's machine.",
    ],
    see: "services.md",
  },
  TUN708: {
    slug: "service-unserved",
    title: "A client of discovery is not served, or rejects what it is sent",
    means:
      "The service has something that these clients have no form for; or " +
      "the client asks for what this server does not have, and may wait " +
      "for ever; or it refuses an answer and keeps what it has. Of a " +
      "client that does so again and again most lines are left out.",
    causes: [
      "The line says what, or has the client's reason.",
      "A client with a configuration for another control plane.",
      "An old client.",
    ],
    mend: ["`tunnel xds status`, `tunnel xds diff CLIENT`."],
    see: "discovery.md",
  },
} as const satisfies Area;
