/**
 * IP addresses and ports as the kernel takes them: `struct sockaddr_in` and
 * `struct sockaddr_in6` of Linux.
 *
 * @module
 */

import {
  formatIpAddress,
  parseIpAddress,
} from "../../proto/peer/ip_address.ts";

/** The peer address of a datagram. */
export interface DatagramAddress {
  /** An IP address. */
  readonly hostname: string;
  readonly port: number;
  /**
   * The address of this machine that the datagram came to, and that answers
   * leave from; absent: the socket's, or the system's choice.
   */
  readonly local?: string;
}

/** Whether a socket there has all addresses of the machine. */
export function isWildcard(hostname: string): boolean {
  return hostname === "" || hostname === "0.0.0.0" || hostname === "::";
}

/** `struct sockaddr_in6`, the longer of the two. */
export const SOCKET_ADDRESS_BYTES = 28;

export const AF_INET = 2;
export const AF_INET6 = 10;
const IPV4_BYTES = 16;
const IPV4_AT = 4;
const IPV6_AT = 8;

/**
 * Writes an address. IPv4-mapped IPv6 becomes IPv4, which Linux takes for a
 * socket of either family.
 *
 * @returns `undefined` when the host is no IP address or has a zone.
 */
export function encodeSocketAddress(
  address: DatagramAddress,
): Uint8Array<ArrayBuffer> | undefined {
  const into = new Uint8Array(SOCKET_ADDRESS_BYTES);
  const bytes = writeSocketAddress(into, address);
  return bytes === undefined ? undefined : into.slice(0, bytes);
}

/**
 * The same for a caller that passes it to the kernel at once and needs it no
 * longer.
 *
 * @param into {@linkcode SOCKET_ADDRESS_BYTES} of room.
 * @returns How many bytes it takes; `undefined` as there.
 */
export function writeSocketAddress(
  into: Uint8Array,
  { hostname, port }: DatagramAddress,
): number | undefined {
  const ip = bytesOf(hostname);
  if (ip === undefined) return undefined;
  const isIpv4 = ip.length === 4;
  into.fill(0);
  into[0] = isIpv4 ? AF_INET : AF_INET6; // In host order: little-endian.
  into[2] = port >> 8;
  into[3] = port & 0xff;
  into.set(ip, isIpv4 ? IPV4_AT : IPV6_AT);
  return isIpv4 ? IPV4_BYTES : SOCKET_ADDRESS_BYTES;
}

/**
 * Hosts whose bytes are remembered: a host is dialed again and again, and to
 * read an address takes as long as three system calls.
 */
const HOSTS_MAX = 256;

const hosts = new Map<string, Uint8Array>();

function bytesOf(hostname: string): Uint8Array | undefined {
  const known = hosts.get(hostname);
  if (known !== undefined) return known;
  const ip = parseIpAddress(hostname);
  if (ip === undefined) return undefined;
  if (hosts.size >= HOSTS_MAX) hosts.clear();
  hosts.set(hostname, ip);
  return ip;
}

/** Reads addresses, and remembers the host of the last one. */
export class SocketAddressReader {
  #last = new Uint8Array(0);
  #lastHost = "";

  /** @param bytes Holds the addresses. */
  constructor(private readonly bytes: Uint8Array) {}

  port(at: number): number {
    return (this.bytes[at + 2]! << 8) | this.bytes[at + 3]!;
  }

  /**
   * The host as the platform writes it.
   *
   * @returns `undefined` for an address of another kind.
   */
  host(at: number): string | undefined {
    const family = this.bytes[at];
    if (family === AF_INET) return this.#read(at + IPV4_AT, 4);
    if (family === AF_INET6) return this.#read(at + IPV6_AT, 16);
    return undefined;
  }

  /** Most datagrams come from the sender of the one before. */
  #read(at: number, bytes: number): string {
    if (this.#isLast(at, bytes)) return this.#lastHost;
    this.#last = this.bytes.slice(at, at + bytes);
    return this.#lastHost = writeHost(this.#last);
  }

  #isLast(at: number, bytes: number): boolean {
    if (this.#last.length !== bytes) return false;
    for (let index = 0; index < bytes; index++) {
      if (this.#last[index] !== this.bytes[at + index]) return false;
    }
    return true;
  }
}

function writeHost(ip: Uint8Array): string {
  const canonical = formatIpAddress(ip);
  if (!canonical.startsWith("::ffff:")) return canonical;
  // A sender over IPv4, seen by a socket for both families.
  const mapped = parseIpAddress(canonical)!;
  return mapped.length === 4 ? `::ffff:${formatIpAddress(mapped)}` : canonical;
}
