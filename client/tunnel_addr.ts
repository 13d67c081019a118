/**
 * Addresses of a connection through the tunnel, in the shape of `Deno.NetAddr`.
 *
 * @module
 */

import { hostOf, portOf } from "../proto/peer/host_port.ts";

/** In the shape of `Deno.NetAddr`; a name that was dialed stays a name. */
export interface TunnelAddr {
  /** What the target is spoken to in. */
  readonly transport: "tcp" | "udp";
  /** A name or an address, IPv6 without brackets. */
  readonly hostname: string;
  /** 0 where there is none. */
  readonly port: number;
}

/** The address of who has none (RFC 4291 section 2.5.2 says it of IPv6). */
export const UNSPECIFIED = { hostname: "0.0.0.0", port: 0 } as const;

/** What was dialed, `host:port` with IPv6 in brackets. */
export function addrOf(
  transport: TunnelAddr["transport"],
  address: string,
): TunnelAddr {
  return { transport, hostname: hostOf(address), port: portOf(address) };
}
