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

/** The host of a socket's `ip:port`; other text unchanged. */
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

/** A host in its form before a port. */
export function bracketed(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

/** A host as it stood there, such as that of a URL. */
export function withoutBrackets(host: string): string {
  return host.replace(/^\[(.*)\]$/, "$1");
}

// Names of hosts as texts: what makes two spellings one name, and what only
// looks like a name. Rules about targets, the catalog and resolvers must agree
// on these, or a rule is walked around by a spelling.

/** Longest name in text (RFC 1035 §3.1, without the root's byte). */
export const NAME_LENGTH_MAX = 253;

/** Lower case, and without the dot that only marks a name as complete. */
export function plainName(name: string): string {
  const lower = name.toLowerCase();
  return lower.endsWith(".") ? lower.slice(0, -1) : lower;
}

/**
 * Whether resolvers take `name` for an IPv4 address in one of inet_aton's many
 * spellings (`127.1`, `0x7f.1`, `2130706433`): its last label is a number.
 */
export function isIpv4Lookalike(name: string): boolean {
  return /(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$/i.test(name);
}

/** Whether no letter of it needs punycode. */
export function isAscii(text: string): boolean {
  // deno-lint-ignore no-control-regex -- that is what ASCII is
  return /^[\x00-\x7f]*$/.test(text);
}

// The address of a server, as servers send it to agents and to each other.

/** A name of DNS, brackets or not, and a port. */
const ADDRESS_MAX = 270;

const HOST = /^(?:[0-9A-Za-z._-]+|[0-9A-Fa-f:.]+(?:%[0-9A-Za-z]+)?)$/;

/** Whether the text is a `HOST:PORT` that can be connected to. */
export function isAddress(text: string): boolean {
  if (text.length > ADDRESS_MAX || !/:\d{1,5}$/.test(text)) return false;
  const port = portOf(text);
  return port > 0 && port < 65_536 && HOST.test(hostOf(text)) &&
    (!hostOf(text).includes(":") || text.startsWith("["));
}
