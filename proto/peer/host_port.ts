/**
 * A host and a port as one text, and apart again.
 *
 * @module
 */

import { formatIpAddress, parseIpAddress } from "./ip_address.ts";

/**
 * Joins a host and a port as Go's `net.JoinHostPort` does. An IPv4 address that
 * a socket for both families reports as `::ffff:10.0.0.1` is an IPv4 address.
 */
export function hostPort(host: string, port: number): string {
  if (!host.includes(":")) return `${host}:${port}`;
  const address = host.startsWith("::ffff:") ? parseIpAddress(host) : undefined;
  return address?.length === 4
    ? `${formatIpAddress(address)}:${port}`
    : `${bracketed(host)}:${port}`;
}

/** The host of an `ip:port` as sockets have it; the whole of anything else. */
export function hostOf(address: string): string {
  const colon = address.lastIndexOf(":");
  if (colon < 0) return address;
  return address.startsWith("[") && address[colon - 1] === "]"
    ? address.slice(1, colon - 1)
    : address.slice(0, colon);
}

/** The port of the same; NaN where there is none. */
export function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(":") + 1));
}

/** A host as it stands in front of a port. */
export function bracketed(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

/** A host as it stood there, such as that of a URL. */
export function withoutBrackets(host: string): string {
  return host.replace(/^\[(.*)\]$/, "$1");
}
