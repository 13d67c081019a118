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
    title: "A source of services cannot be read, or had missed changes",
    means: "What it said before stays in use; it is tried again, and all is " +
      "read again.",
    causes: [
      "etcd, the API server or the URL is away.",
      "The file is gone.",
      "A watch that lost events.",
    ],
    mend: ["The line says what was seen. `tunnel status` lists the sources."],
    see: "catalog.md",
  },
  TUN702: {
    slug: "entry-unusable",
    title: "An entry of a source cannot be used",
    means: "The others are used. The line names the entry.",
    causes: ["A typing error in a service or an endpoint."],
    mend: ["`tunnel config check --kind services FILE`."],
    see: "catalog.md",
  },
  TUN706: {
    slug: "resource-rejected",
    title: "A client of discovery rejects what it is sent",
    means: "It keeps what it has. The line has its reason; of a client that " +
      "does so again and again most lines are left out.",
    causes: ["An old client, or a service that it cannot represent."],
    mend: ["`tunnel xds status`, `tunnel xds diff CLIENT`."],
    see: "discovery.md",
  },
  TUN708: {
    slug: "service-unserved",
    title: "A client of discovery is not served something",
    means:
      "The service has something that these clients have no form for, or " +
      "the client asks for what this server does not have, and may wait " +
      "for ever.",
    causes: [
      "The line says what.",
      "A client with a configuration for another control plane.",
    ],
    mend: ["`tunnel xds status`, `tunnel xds diff NODE`."],
    see: "discovery.md",
  },
  TUN709: {
    slug: "discovery-not-ready",
    title: "Discovery has not everything it needs",
    means: "Clients are sent to other servers until it has.",
    causes: ["A source has not answered since the start."],
    mend: ["`tunnel status` lists the sources."],
    see: "discovery.md",
  },
  TUN711: {
    slug: "discovery-unreachable",
    title: "The discovery server cannot be followed",
    means: "The proxy goes on with what it has.",
    causes: ["The server is away, or refuses this node."],
    mend: ["`tunnel doctor`; the line says what was seen."],
    see: "proxy.md",
  },
  TUN713: {
    slug: "answers-from-anywhere",
    title: "UDP answers may leave from another address",
    means: "The system does not say at which address a datagram arrived.",
    causes: ["A wildcard address without IP_PKTINFO."],
    mend: ["Bind to one address."],
    see: "proxy.md",
  },
  TUN714: {
    slug: "proxy-exposed",
    title: "Services listen on an address that others can reach",
    means: "Nobody is asked who they are there.",
    causes: ["`--bind-address` is not loopback."],
    mend: ["Leave it out, or use a firewall."],
    see: "proxy.md",
  },
} as const satisfies Area;
