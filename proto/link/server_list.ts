/**
 * Where servers are, as a server says it over the packets carrier: one metadata
 * field of its answer, which Go agents ignore. There is no word of what changes
 * later; the next link brings that.
 *
 * @module
 */

import type { PeerServer } from "./link_messages.ts";

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

/** What a server has said; what cannot be read is left out. */
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
