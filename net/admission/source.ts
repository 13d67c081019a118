/**
 * Which addresses count as one source when peers are counted.
 *
 * @module
 */

import { parseIpAddress } from "../../proto/peer/ip_address.ts";

/**
 * An IPv4 address, or the /64 that one subscriber has in IPv6.
 *
 * @param remoteAddress `ip:port`, `[ip6]:port`, or any other name.
 */
export function sourceOf(remoteAddress: string): string {
  const host = remoteAddress.replace(/:\d+$/, "").replace(/^\[|\]$/g, "")
    // How a dual-stack listener names an IPv4 peer.
    .replace(/^::ffff:(?=[0-9.]+$)/, "");
  const address = parseIpAddress(host);
  if (address === undefined || address.length === 4) return host;
  return address.subarray(0, 8).toHex();
}
