/**
 * What our two ends say to each other on paths that Konnectivity's programs use
 * too: metadata fields that Go peers ignore.
 *
 * @module
 */

import { Metadata } from "../grpc/metadata.ts";
import type { PeerServer } from "./link_messages.ts";

/** The metadata field; its value is a comma-separated list of capabilities. */
export const CAPABILITIES_FIELD = "tunnel-capabilities";

/**
 * What this build can do, in the words of SPEC.md.
 *
 * - `half-close`: END_STREAM from a caller and DATA_END from either end close
 *   one direction only.
 * - `datagram`: one DATA packet is one datagram when DIAL_REQ says `udp`, and
 *   an empty datagram differs from an empty packet.
 * - `early-data`: DATA with connectID 0 may follow DIAL_REQ at once.
 * - `reset-reason`: the reset field of CLOSE_REQ and CLOSE_RSP is read.
 */
export const CAPABILITIES = [
  "half-close",
  "datagram",
  "early-data",
  "reset-reason",
] as const;

/** One of {@linkcode CAPABILITIES}. */
type Capability = typeof CAPABILITIES[number];

/**
 * Metadata that announces our capabilities.
 *
 * @param others Fields to be sent as well; left as they are.
 */
export function announceCapabilities(others?: Metadata): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of others ?? []) metadata.add(name, value);
  metadata.add(CAPABILITIES_FIELD, OUR_LIST);
  return metadata;
}

/** Whether the peer that sent `metadata` announced `capability`. */
export function hasCapability(
  metadata: Metadata,
  capability: Capability,
): boolean {
  // The list of this very build, as nearly always, needs no reading.
  if (metadata.text(CAPABILITIES_FIELD) === OUR_LIST) return true;
  return metadata.texts(CAPABILITIES_FIELD).some((list) =>
    list.split(",").some((word) => word.trim() === capability)
  );
}

const OUR_LIST = CAPABILITIES.join(",");

/** What {@linkcode announceCapabilities} gives without anything else; final. */
export const OUR_CAPABILITIES: Metadata = announceCapabilities().freeze();

// The gRPC methods that are Konnectivity's, by their paths; ours are in the
// modules made of `.proto` files.

/** Opens one conduit; without a package, as Konnectivity has it. */
export const PROXY_PATH = "/ProxyService/Proxy";

/** Carries a link of the packets carrier; as Konnectivity has it, too. */
export const CONNECT_PATH = "/AgentService/Connect";

// The addresses of servers, as a server sends them over the packets carrier:
// one metadata field of its answer, which Go agents ignore. Later changes are
// not sent; the next link brings them.

/** The metadata field: `ID INSTANCE ADDRESS`, each encoded as in URLs, by commas. */
export const SERVERS_FIELD = "tunnel-servers";

/** Longest text: peers have limits on the size of all fields together. */
export const SERVER_LIST_MAX = 4_096;

/** As many as fit. */
export function formatServers(servers: readonly PeerServer[]): string {
  let text = "";
  for (const { serverId, instanceId, address } of servers) {
    const parts = [serverId, instanceId, address].map(encodeURIComponent);
    const more = `${text === "" ? "" : ","}${parts.join(" ")}`;
    if (text.length + more.length > SERVER_LIST_MAX) break;
    text += more;
  }
  return text;
}

/** A server's report; unreadable parts are left out. */
export function parseServers(text: string | undefined): PeerServer[] {
  if (text === undefined || text.length > SERVER_LIST_MAX) return [];
  return text.split(",").flatMap((entry) => {
    const parts = entry.trim().split(" ").map(decoded);
    const [serverId, instanceId, address] = parts;
    const isWhole = parts.length === 3 && serverId !== undefined &&
      instanceId !== undefined && address !== undefined && serverId !== "";
    return isWhole ? [{ serverId, instanceId, address }] : [];
  });
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
